// Send a request and fill its clip as the events arrive.
import { type Clip, type Steps, toFloats } from "./clip";
import { requestBody, type SpeechRequest } from "./request";
import { errorText, post } from "./server";
import { events } from "./sse";
import type { Word } from "./words";

type Event =
  | { type: "speech.audio.delta"; audio: string }
  | { type: "speech.audio.words"; words: Word[] }
  | { type: "speech.audio.done" }
  | { type: "speech.audio.error"; error: { message: string } };

/** Fill the clip until it is complete, failed or stopped. Never throws: errors are in the clip. */
export async function synthesise(request: SpeechRequest, clip: Clip, stop: AbortSignal): Promise<void> {
  const started = performance.now();
  try {
    const body = { ...requestBody(request), response_format: "pcm", stream_format: "sse", word_timestamps: true };
    const response = await post("/v1/audio/speech", body, stop);
    clip.batch.value = Number(response.headers.get("x-batch-size")) || null;
    clip.voice.value = response.headers.get("x-voice-used") ?? "";
    clip.steps.value = parseServerTiming(response.headers.get("server-timing") ?? "");
    for await (const event of events<Event>(response)) {
      if (event.type === "speech.audio.delta") {
        clip.first_ms.value ??= performance.now() - started;
        clip.append(toFloats(Uint8Array.from(atob(event.audio), (char) => char.charCodeAt(0))));
        clip.total_ms.value = performance.now() - started;
      } else if (event.type === "speech.audio.words") {
        clip.addWords(event.words);
      } else if (event.type === "speech.audio.error") {
        return clip.end("failed", event.error.message);
      } else {
        return clip.end("whole");
      }
    }
    clip.end("failed", "The connection broke before the end of the speech.");
  } catch (error) {
    const message = errorText(error);
    clip.end(message ? "failed" : "stopped", message);
  }
}

function parseServerTiming(timing: string): Steps {
  const entries = [...timing.matchAll(/([\w-]+);dur=([\d.]+)/g)];
  return Object.fromEntries(entries.map((entry) => [entry[1]!, Number(entry[2])]));
}
