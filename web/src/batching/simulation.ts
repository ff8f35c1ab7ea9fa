// Many clients from one browser, each with its own WebSocket: browsers send at most six plain requests at a time.
import { signal } from "@preact/signals";
import { address } from "../address";
import { RATE, toFloats } from "../clip";
import { key, post } from "../server";
import { events } from "../sse";
import { now_s, recent, waitForTick } from "./stats";

export type ClientState = "waiting" | "refused" | "receiving" | "done" | "failed";

const RETRY_MS = 400; // until a refused client tries again

/** How the clients of a run are served: one after the other, all at once, or all at once under a policy on trial. */
export interface Mode {
  id: string;
  title: string;
  sequential?: boolean;
  policy?: string;
}

/** One run of all clients. */
export class Run {
  readonly clients = signal<ClientState[]>([]);
  readonly first_ms: number[] = []; // since the start of the run, at which all clients are there
  readonly clips: Float32Array[][] = [];
  readonly error = signal("");
  readonly total_ms = signal<number | null>(null);
  readonly refused = new Set<number>(); // clients that had to try again
  started_ms = 0;
  speech_s = 0;
  batches: number[] = []; // requests in each batch of this run

  constructor(readonly mode: Mode) {}

  percentile(share: number): number | null {
    const sorted = [...this.first_ms].sort((one, other) => one - other);
    return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]! : null;
  }

  set(n: number, state: ClientState): void {
    this.clients.value = this.clients.value.with(n, state);
  }
}

// From two words to a paragraph: the long ones are what others wait for when they are served one by one.
const TEXTS = [
  "The orchestra tunes to a single note. One oboe holds it, alone. Then the strings take it up, desk by desk, until the hall is full.",
  "Yes, please.",
  "Your order has left the house. It should be with you by noon.",
  "Turn left at the bridge, and go straight on for two miles. Your destination is on the right.",
  "Good morning, everyone.",
  "The meeting has moved to three o'clock. The room is the same as last week. Please bring the plans.",
  "Thank you.",
  "It will rain tonight, with strong winds from the west. Tomorrow the sky clears slowly from the coast.",
];
const VOICES = ["af_heart", "am_michael", "bf_emma", "bm_george", "af_bella", "am_puck", "af_nicole", "bm_fable"];

/** Characters that `size` clients ask for. */
export function textOf(size: number): string {
  return Array.from({ length: size }, (_, n) => TEXTS[n % TEXTS.length]).join(" ");
}

/** Connect `size` clients, then serve them in the mode of the run. */
export async function simulate(run: Run, size: number, stop: AbortSignal): Promise<void> {
  const trialOver = new AbortController();
  const onTrial = run.mode.policy !== undefined;
  stop.addEventListener("abort", () => trialOver.abort());
  try {
    if (onTrial) await startTrial(run, trialOver.signal);
    const before = new Set(recent.value.map(({ id }) => id));
    run.clients.value = Array<ClientState>(size).fill("waiting");
    const clients = run.clients.value.map((_, n) => new Client(run, n, stop));
    await Promise.all(clients.map((client) => client.connected));
    run.started_ms = performance.now();
    if (run.mode.sequential) for (const client of clients) await client.speak();
    else await Promise.all(clients.map((client) => client.speak()));
    const total_ms = performance.now() - run.started_ms;
    const end_s = now_s();
    await waitForTick(({ t }) => t > end_s, stop); // the next tick has the last batches
    const own = recent.value.filter(({ id, stage }) => !before.has(id) && stage === "vocoder");
    run.batches = own.map(({ rows }) => new Set(rows.map(({ stream }) => stream)).size);
    run.total_ms.value = total_ms;
  } finally {
    trialOver.abort(); // closing the connection ends the trial
    if (onTrial) await waitForTick(({ trial }) => trial === null, stop);
  }
}

/** Activate the policy for as long as the connection stays open. */
async function startTrial(run: Run, stop: AbortSignal): Promise<void> {
  const trialEvents = events<TrialEvent>(await post("/v1/stats/trial", { policy: run.mode.policy! }, stop));
  await trialEvents.next();
  void keepTrial(run, trialEvents);
}

interface TrialEvent {
  type: string;
  reason?: string;
}

/** Keep the connection open; report a trial that the server ends early. */
async function keepTrial(run: Run, trialEvents: AsyncGenerator<TrialEvent>): Promise<void> {
  try {
    for await (const { type, reason } of trialEvents)
      if (type === "end") run.error.value = `The trial ended early: ${reason}.`;
  } catch {
    // This side closed the connection.
  }
}

/** One listener with its own socket. */
class Client {
  readonly connected: Promise<void>;
  private readonly socket: WebSocket;
  private readonly ended: Promise<void>;

  constructor(
    private readonly run: Run,
    private readonly n: number,
    stop: AbortSignal,
  ) {
    const socket = new WebSocket(address("/v1/audio/speech/stream").replace("http", "ws"), key.value ? ["realtime", `openai-insecure-api-key.${key.value}`] : []);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    const close = () => {
      // Closing a socket while it connects makes the browser log an error.
      if (socket.readyState === WebSocket.CONNECTING) socket.addEventListener("open", () => socket.close());
      else socket.close();
    };
    if (stop.aborted) close();
    stop.addEventListener("abort", close);
    run.clips[n] = [];
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => this.receive(data);
    this.ended = new Promise((resolve) => {
      socket.addEventListener("close", () => {
        stop.removeEventListener("abort", close);
        if (run.clients.value[n] !== "done") run.set(n, "failed");
        resolve();
      });
    });
    const opened = new Promise<void>((resolve) => socket.addEventListener("open", () => resolve()));
    this.connected = Promise.race([opened, this.ended]);
  }

  /** Request the text of this client, and wait until it has been received. */
  async speak(): Promise<void> {
    const voice = VOICES[this.n % VOICES.length];
    this.send({ type: "session.config", voice, response_format: "pcm", word_timestamps: false });
    this.request();
    await this.ended;
  }

  private request(): void {
    this.send({ type: "input.text", text: TEXTS[this.n % TEXTS.length] });
    this.send({ type: "input.done" });
  }

  private send(message: object): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private receive(data: ArrayBuffer | string): void {
    const { run, n } = this;
    if (typeof data !== "string") {
      if (run.clients.value[n] !== "receiving") {
        run.first_ms.push(performance.now() - run.started_ms);
        run.set(n, "receiving");
      }
      const piece = toFloats(new Uint8Array(data));
      run.clips[n]!.push(piece);
      run.speech_s += piece.length / RATE;
      return;
    }
    const event = JSON.parse(data);
    if (event.type === "error" && event.error.code === "queue_full") {
      run.refused.add(n);
      run.set(n, "refused");
      setTimeout(() => this.request(), RETRY_MS);
    } else if (event.type === "error" || event.type === "audio.done") {
      if (event.type === "error") run.error.value = event.error.message;
      run.set(n, event.type === "error" ? "failed" : "done");
      this.socket.close();
    }
  }
}

/** Mix the audio of all clients, normalised. */
export function mix(run: Run): Float32Array {
  const voices = run.clips.map((pieces) => pieces.flatMap((piece) => [...piece]));
  const sum = new Float32Array(Math.max(...voices.map((voice) => voice.length)));
  for (const voice of voices) voice.forEach((sample, n) => (sum[n]! += sample));
  const loudest = sum.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0.9);
  return sum.map((sample) => (0.9 * sample) / loudest);
}
