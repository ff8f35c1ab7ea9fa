// The live event stream of the server's batching, and the part of it that the view shows.
import { signal } from "@preact/signals";
import { events } from "../sse";
import { explain } from "../problems";
import { get, key, ServerError } from "../server";
import type { Batch, Event, Hello, Tick } from "./events";

const MAX_BATCHES = 600;
export const HISTORY_S = 60;
const RECONNECT_MS = 2000;
const TICK_TIMEOUT_MS = 3000;

/** One point of the charts for each tick; null where nothing was counted. */
export interface Point {
  t: number;
  waiting: number;
  rows: (number | null)[]; // by stage
  padding: (number | null)[];
  first_ms: (number | null)[]; // p50 and p95
  speech: number[]; // seconds of speech per second: all, and delivered in time
}

export const hello = signal<Hello | null>(null);
export const tick = signal<Tick | null>(null);
export const recent = signal<Batch[]>([]); // oldest first
export const points = signal<Point[]>([]);
export const connection = signal<"live" | "connecting" | "lost">("connecting");
export const problem = signal("");

let offset_s = Number.POSITIVE_INFINITY; // this clock minus the server's

/** The server's clock, estimated from the event with the shortest delay. */
export function now_s(): number {
  return performance.now() / 1000 - offset_s;
}

/** Read events until the returned function is called; reconnect when the connection breaks. */
export function watch(): () => void {
  const stop = new AbortController();
  void readEvents(stop.signal);
  return () => stop.abort();
}

async function readEvents(stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    connection.value = "connecting";
    const triedKey = key.value;
    try {
      problem.value = "Connection lost; reconnecting.";
      for await (const event of events<Event>(await get("/v1/stats/stream", stop))) apply(event);
    } catch (error) {
      problem.value = explain(error)?.text ?? "";
      if (error instanceof ServerError && error.status === 401) await keyChanged(triedKey, stop);
    }
    if (stop.aborted) return;
    connection.value = "lost";
    await new Promise((resume) => setTimeout(resume, RECONNECT_MS));
  }
}

/** Wait for another key: the same one would be refused again. */
function keyChanged(triedKey: string, stop: AbortSignal): Promise<void> {
  connection.value = "lost";
  return new Promise((resume) => {
    const unsubscribe = key.subscribe((now) => now !== triedKey && resume());
    stop.addEventListener("abort", () => resume());
    stop.addEventListener("abort", unsubscribe);
  });
}

/** Wait for a new tick that meets the condition, until stopped or timed out. */
export function waitForTick(condition: (now: Tick) => boolean, stop: AbortSignal): Promise<void> {
  const previous = tick.value;
  return new Promise((resume) => {
    let ended = false;
    const end = () => {
      ended = true;
      clearTimeout(timeout);
      queueMicrotask(() => unsubscribe());
      resume();
    };
    const timeout = setTimeout(end, TICK_TIMEOUT_MS);
    stop.addEventListener("abort", end);
    const unsubscribe = tick.subscribe((now) => {
      if (!ended && now && now !== previous && condition(now)) end();
    });
  });
}

function apply(event: Event): void {
  if (event.type === "hello") {
    offset_s = performance.now() / 1000 - event.t;
    hello.value = event;
    recent.value = event.batches;
    points.value = [];
    connection.value = "live";
  } else if (event.type === "tick") {
    offset_s = Math.min(offset_s, performance.now() / 1000 - event.t);
    recent.value = merge(recent.value, event);
    points.value = [...points.value.filter(({ t }) => t > event.t - HISTORY_S), point(event)];
    tick.value = event;
  } else if (event.type === "bye") problem.value = event.reason;
}

/** Replace batches by their later events; drop running ones that the server no longer lists. */
function merge(known: Batch[], { batches, running }: Tick): Batch[] {
  const updated = new Set(batches.map(({ id }) => id));
  const unchanged = known.filter(({ id, outcome }) => !updated.has(id) && (outcome !== "running" || running.includes(id)));
  const all = batches.length || unchanged.length < known.length ? [...unchanged, ...batches] : known;
  return all.length > MAX_BATCHES ? all.slice(-MAX_BATCHES) : all;
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
