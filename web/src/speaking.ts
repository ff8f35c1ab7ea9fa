// From a request to a clip: events arrive, samples and words are handed on as they do.
import { type Ask, body } from "./ask";
import { type Clip, floats, type Steps } from "./clip";
import { events } from "./sse";
import { post, worded } from "./server";
import type { Word } from "./words";

type Event =
  | { type: "speech.audio.delta"; audio: string }
  | { type: "speech.audio.words"; words: Word[] }
  | { type: "speech.audio.done" }
  | { type: "speech.audio.error"; error: { message: string } };

/** Fills the clip until it is whole, has failed, or `stop` hangs up. Never throws: the clip tells. */
export async function speak(ask: Ask, clip: Clip, stop: AbortSignal): Promise<void> {
  const began = performance.now();
  try {
    const asked = { ...body(ask), response_format: "pcm", stream_format: "sse", word_timestamps: true };
    const reply = await post("/v1/audio/speech", asked, stop);
    clip.batch.value = Number(reply.headers.get("x-batch-size")) || null;
    clip.voice.value = reply.headers.get("x-voice-used") ?? "";
    clip.steps.value = steps(reply.headers.get("server-timing") ?? "");
    for await (const event of events<Event>(reply)) {
      if (event.type === "speech.audio.delta") {
        clip.first_ms.value ??= performance.now() - began;
        clip.append(floats(Uint8Array.from(atob(event.audio), (char) => char.charCodeAt(0))));
        clip.made_ms.value = performance.now() - began;
      } else if (event.type === "speech.audio.words") {
        clip.say(event.words);
      } else if (event.type === "speech.audio.error") {
        return clip.end("failed", event.error.message);
      } else {
        return clip.end("whole");
      }
    }
    clip.end("failed", "The connection broke before the end of the speech.");
  } catch (error) {
    const what = worded(error);
    clip.end(what ? "failed" : "stopped", what);
  }
}

export function steps(timing: string): Steps {
  const found = [...timing.matchAll(/([\w-]+);dur=([\d.]+)/g)];
  return Object.fromEntries(found.map((step) => [step[1]!, Number(step[2])]));
}
