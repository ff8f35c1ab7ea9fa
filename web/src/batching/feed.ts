// The live stream of the server's batching, kept as long as a picture of it needs.
import { signal } from "@preact/signals";
import { events } from "../sse";
import { get, key, Refused, worded } from "../server";
import type { Batch, Event, Hello, Tick } from "./events";

const MOST_BATCHES = 600;
export const KEPT_S = 60;
const RETRY_MS = 2000;
const PATIENCE_MS = 3000;

/** What the charts show, one value a tick; null where nothing was counted. */
export interface Point {
  t: number;
  waiting: number;
  rows: (number | null)[]; // by stage
  padding: (number | null)[];
  first_ms: (number | null)[]; // median, and one in twenty
  speech: number[]; // seconds a second: all, and in time
}

export const hello = signal<Hello | null>(null);
export const tick = signal<Tick | null>(null);
export const recent = signal<Batch[]>([]); // oldest first
export const points = signal<Point[]>([]);
export const standing = signal<"live" | "joining" | "gone">("joining");
export const why = signal("");

let ahead_s = Number.POSITIVE_INFINITY; // our clock less the server's

/** The server's clock, as near as the fastest event told it. */
export function now_s(): number {
  return performance.now() / 1000 - ahead_s;
}

/** Watches until told to stop; comes back by itself when the connection breaks. */
export function watch(): () => void {
  const stop = new AbortController();
  void follow(stop.signal);
  return () => stop.abort();
}

async function follow(stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    standing.value = "joining";
    const tried = key.value;
    try {
      why.value = "The connection broke; trying again.";
      for await (const event of events<Event>(await get("/v1/stats/stream", stop))) told(event);
    } catch (error) {
      why.value = worded(error);
      if (error instanceof Refused && error.status === 401) await changed(tried, stop);
    }
    if (stop.aborted) return;
    standing.value = "gone";
    await new Promise((resume) => setTimeout(resume, RETRY_MS));
  }
}

/** Until another key was entered: the same one would be refused again. */
function changed(tried: string, stop: AbortSignal): Promise<void> {
  standing.value = "gone";
  return new Promise((resume) => {
    const unsubscribe = key.subscribe((now) => now !== tried && resume());
    stop.addEventListener("abort", () => resume());
    stop.addEventListener("abort", unsubscribe);
  });
}

/** Until a tick to come is as it should be, or nobody waits any more; a stream that is silent holds nobody up. */
export function until(met: (now: Tick) => boolean, stop: AbortSignal): Promise<void> {
  const since = tick.value;
  return new Promise((resume) => {
    let over = false;
    const end = () => {
      over = true;
      clearTimeout(patience);
      queueMicrotask(() => unsubscribe());
      resume();
    };
    const patience = setTimeout(end, PATIENCE_MS);
    stop.addEventListener("abort", end);
    const unsubscribe = tick.subscribe((now) => {
      if (!over && now && now !== since && met(now)) end();
    });
  });
}

function told(event: Event): void {
  if (event.type === "hello") {
    ahead_s = performance.now() / 1000 - event.t;
    hello.value = event;
    recent.value = event.batches;
    points.value = [];
    standing.value = "live";
  } else if (event.type === "tick") {
    ahead_s = Math.min(ahead_s, performance.now() / 1000 - event.t);
    recent.value = merged(recent.value, event);
    points.value = [...points.value.filter(({ t }) => t > event.t - KEPT_S), point(event)];
    tick.value = event;
  } else if (event.type === "bye") why.value = event.reason;
}

/** A later telling of a batch replaces the earlier one; what was running and is not named any more has ended unseen. */
function merged(before: Batch[], { batches, running }: Tick): Batch[] {
  const again = new Set(batches.map(({ id }) => id));
  const kept = before.filter(({ id, outcome }) => !again.has(id) && (outcome !== "running" || running.includes(id)));
  const all = batches.length || kept.length < before.length ? [...kept, ...batches] : before;
  return all.length > MOST_BATCHES ? all.slice(-MOST_BATCHES) : all;
}

function point({ t, waiting, lately }: Tick): Point {
  return {
    t,
    waiting,
    rows: [lately.rows_per_batch.acoustic, lately.rows_per_batch.vocoder],
    padding: [lately.padding.acoustic, lately.padding.vocoder].map((share) => (share === null ? null : 100 * share)),
    first_ms: [lately.first_audio_ms.p50, lately.first_audio_ms.p95],
    speech: [lately.audio_per_s, lately.good_audio_per_s],
  };
}
