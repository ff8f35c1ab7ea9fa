// Server-sent events from a fetch, because EventSource can neither POST nor send a key.

/** The JSON of each event, as it arrives. */
export async function* events<Event>(response: Response): AsyncGenerator<Event> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
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
    // Closes the connection when the reader stops, so that the server stops too.
    reader.cancel().catch(() => undefined);
  }
}
