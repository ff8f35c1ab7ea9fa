// The events of GET /v1/stats/stream, as in docs/stats.md.
export type Stage = "acoustic" | "vocoder";
export type Class = "first" | "next" | "bulk";
export const STAGES: Stage[] = ["acoustic", "vocoder"];
export const CLASSES: Class[] = ["first", "next", "bulk"];

export interface Row {
  stream: number;
  class: Class;
  size: number;
  padded: number;
  waited_ms: number;
}

export interface Batch {
  id: number;
  stage: Stage;
  policy: string;
  reason: string;
  outcome: "running" | "done" | "failed" | "lost";
  start: number; // seconds on the server's clock
  ms: number | null;
  predicted_ms: number;
  padded: number;
  padding: number;
  rows: Row[];
}

export interface Job {
  stream: number;
  class: Class;
  size: number;
  age_ms: number;
  due_ms: number;
}

export type Waiting = Record<Class, number> & { jobs: Job[] };
type PerStage = Record<Stage, number | null>;
interface Percentiles {
  n: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export interface Hello {
  type: "hello";
  version: string;
  t: number;
  policy: string;
  policies: string[];
  settings: Record<string, number | boolean | null>;
  units: Record<Stage, string>;
  workers: string[];
  models: string[];
  batches: Batch[];
}

export interface Tick {
  type: "tick";
  t: number;
  policy: string;
  trial: { policy: string; left_s: number } | null;
  queue: Record<Stage, Waiting>;
  waiting: number;
  backlog_ms: number;
  batches: Batch[];
  running: number[];
  lately: {
    over_s: number;
    rows_per_batch: PerStage;
    padding: PerStage;
    batch_ms: PerStage;
    busy: Record<string, number>;
    first_audio_ms: Percentiles;
    queue_ms: Percentiles;
    audio_per_s: number;
    good_audio_per_s: number;
    first_in_time: number | null;
    underruns: number;
    rejected: number;
    failed: number;
  };
  totals: { batches: number; rows: number; audio_s: number };
}

export type Event = Hello | Tick | { type: "lost"; ticks: number } | { type: "bye"; reason: string };
