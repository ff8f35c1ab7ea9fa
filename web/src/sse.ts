// Server-sent events out of a fetch: EventSource can neither POST nor send a key.

/** The JSON of each event, as it arrives. */
export async function* events<Event>(reply: Response): AsyncGenerator<Event> {
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop()!;
      for (const line of lines) if (line.startsWith("data:")) yield JSON.parse(line.slice(5)) as Event;
    }
  } finally {
    // Whoever stops reading hangs up, so that the server stops too.
    reader.cancel().catch(() => undefined);
  }
}
