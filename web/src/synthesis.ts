// Send a request and fill its clip as the events arrive.
import { type Clip, type Steps, toFloats } from "./clip";
import { explain, type Problem } from "./problems";
import { requestBody, requestPath, type SpeechRequest } from "./request";
import { post, ServerError } from "./server";
import { events } from "./sse";
import type { Word } from "./words";

type Event =
  | { type: "speech.audio.delta"; audio: string }
  | { type: "speech.audio.words"; words: Word[] }
  | { type: "speech.audio.notice"; unspoken?: string[]; unspoken_count?: number; notices?: string[] }
  | { type: "speech.audio.done" }
  | { type: "speech.audio.error"; error: { message: string; code?: string } };

const BROKEN: Problem = {
  text: "The connection broke before the end of the speech.",
  step: "What has arrived can be played.",
  detail: "",
  retry: true,
};

/** Fill the clip until it is complete, failed or stopped. Never throws: errors are in the clip. */
export async function synthesise(request: SpeechRequest, clip: Clip, stop: AbortSignal): Promise<void> {
  const started = performance.now();
  try {
    const body = { ...requestBody(request), response_format: "pcm", stream_format: "sse", word_timestamps: true };
    const response = await post(requestPath(request), body, stop);
    clip.batch.value = Number(response.headers.get("x-batch-size")) || null;
    clip.steps.value = parseServerTiming(response.headers.get("server-timing") ?? "");
    for await (const event of events<Event>(response)) {
      if (event.type === "speech.audio.delta") {
        clip.first_ms.value ??= performance.now() - started;
        clip.append(toFloats(Uint8Array.from(atob(event.audio), (char) => char.charCodeAt(0))));
        clip.total_ms.value = performance.now() - started;
      } else if (event.type === "speech.audio.words") {
        clip.addWords(event.words);
      } else if (event.type === "speech.audio.notice") {
        clip.addNotices(event.notices ?? [], event.unspoken ?? [], event.unspoken_count ?? 0);
      } else if (event.type === "speech.audio.error") {
        return clip.end("failed", explain(new ServerError(500, event.error.code ?? "", event.error.message)));
      } else if (event.type === "speech.audio.done") {
        return clip.end("whole");
      }
    }
    clip.end("failed", BROKEN);
  } catch (error) {
    const problem = explain(error);
    clip.end(problem ? "failed" : "stopped", problem && clip.count.value ? BROKEN : problem);
  }
}

function parseServerTiming(timing: string): Steps {
  const entries = [...timing.matchAll(/([\w-]+);dur=([\d.]+)/g)];
  return Object.fromEntries(entries.map((entry) => [entry[1]!, Number(entry[2])]));
}
