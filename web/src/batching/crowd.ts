// Many callers at once, out of one browser. Each has a WebSocket of its own: of plain requests a browser sends six at a time.
import { signal } from "@preact/signals";
import { floats, RATE } from "../clip";
import { events } from "../sse";
import { key, post } from "../server";
import { now_s, recent, until } from "./feed";

export type Seat = "waiting" | "turned" | "sounding" | "done" | "failed";

const AGAIN_MS = 400; // whoever is turned away comes again, as any client of an honest server does

/** One run of the whole crowd under one policy. */
export class Run {
  readonly seats = signal<Seat[]>([]);
  readonly first_ms: number[] = [];
  readonly clips: Float32Array[][] = [];
  readonly error = signal("");
  readonly total_ms = signal<number | null>(null);
  readonly turned = new Set<number>(); // callers who were told to come again
  speech_s = 0;
  batches: number[] = []; // rows of each that left while the crowd was served

  constructor(readonly policy: string) {}

  percentile(share: number): number | null {
    const sorted = [...this.first_ms].sort((one, other) => one - other);
    return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]! : null;
  }

  sit(n: number, seat: Seat): void {
    this.seats.value = this.seats.value.with(n, seat);
  }
}

// From a word to a breath and a half: lengths that do not fit together are what batching is about.
const TEXTS = [
  "Yes.",
  "The strings come in one by one.",
  "Good morning, everyone.",
  "A single oboe holds the note until the whole hall has found it.",
  "Thank you.",
  "Your order has left the house and should be with you by noon.",
  "Turn left at the bridge.",
  "Nobody waited for the last player to find a chair; whoever was ready came in.",
];
const VOICES = ["af_heart", "am_michael", "bf_emma", "bm_george", "af_bella", "am_puck", "af_nicole", "bm_fable"];

/** Serves `size` callers under `run.policy`, or under the server's own where that is no trial. */
export async function play(run: Run, size: number, trial: boolean, stop: AbortSignal): Promise<void> {
  const over = new AbortController();
  stop.addEventListener("abort", () => over.abort());
  try {
    if (trial) await begin(run, over.signal);
    const before = new Set(recent.value.map(({ id }) => id));
    run.seats.value = Array<Seat>(size).fill("waiting");
    const began = performance.now();
    await Promise.all(run.seats.value.map((_, n) => caller(run, n, stop)));
    const total_ms = performance.now() - began;
    const end_s = now_s();
    await until(({ t }) => t > end_s, stop); // its last batches are told by the next tick
    const mine = recent.value.filter(({ id, stage }) => !before.has(id) && stage === "vocoder");
    run.batches = mine.map(({ rows }) => rows.length);
    run.total_ms.value = total_ms;
  } finally {
    over.abort(); // hanging up ends the trial
    if (trial) await until(({ trial: held }) => held === null, stop);
  }
}

/** Puts the policy in force for as long as the connection stays open. */
async function begin(run: Run, over: AbortSignal): Promise<void> {
  const told = events<Told>(await post("/v1/stats/trial", { policy: run.policy }, over));
  await told.next();
  void hold(run, told);
}

interface Told {
  type: string;
  reason?: string;
}

/** Reads on, so that the trial stays; one that the server ends was no fair one. */
async function hold(run: Run, told: AsyncGenerator<Told>): Promise<void> {
  try {
    for await (const { type, reason } of told)
      if (type === "end") run.error.value = `The trial ended early: ${reason}.`;
  } catch {
    // We hung up.
  }
}

function caller(run: Run, n: number, stop: AbortSignal): Promise<void> {
  return new Promise((resume) => {
    const address = new URL("/v1/audio/speech/stream", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address, key.value ? ["realtime", `openai-insecure-api-key.${key.value}`] : []);
    socket.binaryType = "arraybuffer";
    const hangUp = () => {
      // Closed while it opens, a socket makes the browser complain.
      if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
      else socket.close();
    };
    stop.addEventListener("abort", hangUp);
    let asked = 0;
    run.clips[n] = [];
    const say = (message: object) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
    const ask = () => {
      say({ type: "input.text", text: TEXTS[n % TEXTS.length] });
      say({ type: "input.done" });
    };
    socket.onopen = () => {
      asked = performance.now();
      say({ type: "session.config", voice: VOICES[n % VOICES.length], response_format: "pcm", word_timestamps: false });
      ask();
    };
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data !== "string") {
        if (run.seats.value[n] !== "sounding") {
          run.first_ms.push(performance.now() - asked);
          run.sit(n, "sounding");
        }
        const piece = floats(new Uint8Array(data));
        run.clips[n]!.push(piece);
        run.speech_s += piece.length / RATE;
        return;
      }
      const told = JSON.parse(data);
      if (told.type === "error" && told.error.code === "queue_full") {
        run.turned.add(n);
        run.sit(n, "turned");
        setTimeout(ask, AGAIN_MS);
      } else if (told.type === "error" || told.type === "audio.done") {
        if (told.type === "error") run.error.value = told.error.message;
        run.sit(n, told.type === "error" ? "failed" : "done");
        socket.close();
      }
    };
    socket.onclose = () => {
      stop.removeEventListener("abort", hangUp);
      if (run.seats.value[n] !== "done") run.sit(n, "failed");
      resume();
    };
  });
}

/** All of them over one another, as loud as one. */
export function together(run: Run): Float32Array {
  const voices = run.clips.map((pieces) => pieces.flatMap((piece) => [...piece]));
  const mixed = new Float32Array(Math.max(...voices.map((voice) => voice.length)));
  for (const voice of voices) voice.forEach((sample, n) => (mixed[n]! += sample));
  const loudest = mixed.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0.9);
  return mixed.map((sample) => (0.9 * sample) / loudest);
}
