// The active policy and its settings, and the latest numbers.
import { LabelledNumber } from "../number";
import { formatMs } from "../time";
import { connection, hello, problem, tick } from "./stats";

const POLICIES: Record<string, string> = {
  deadline:
    "A batch starts when the device is free: the most urgent row first; others join if that costs less than running them alone and makes none late.",
  fifo: "A batch starts when the device is free, in order of arrival.",
  window: "A batch waits for more rows until its waiting time is over or it has enough.",
  bypass: "First chunks run alone and at once; the others wait for more rows.",
};
const LABELS: Record<string, string> = {
  batching: "batching",
  max_batch_size: "rows per batch, at most",
  max_queue: "jobs waiting, at most",
  first_audio_ms: "target for the first sound",
  cap_ms: "longest batch, target",
  first_chunks: "chunks of a stream that count as first",
  max_wait_ms: "longest wait",
  min_wait_ms: "shortest wait",
  early_rows: "starts early at rows",
  max_batch_frames: "padded frames per batch",
  max_batch_text: "characters per batch",
};

export function Status() {
  const now = tick.value;
  const policy = now?.policy ?? hello.value?.policy ?? "…";
  return (
    <div class="status">
      <p>
        <span class="lamp" data-connection={connection.value} aria-hidden="true" />{" "}
        {connection.value === "live"
          ? "Live"
          : connection.value === "connecting"
            ? "Connecting"
            : problem.value || "Not connected"}
      </p>
      <p>
        policy <b id="policy">{policy}</b>
        {now?.trial ? <span class="faint"> (trial, {Math.ceil(now.trial.left_s)} s left)</span> : null}
      </p>
      <p>
        busy <b>{percent(Object.values(now?.lately.busy ?? {}))}</b>
      </p>
      <p>
        <b>{now?.totals.batches.toLocaleString("en") ?? "…"}</b> batches,{" "}
        <b>{Math.round(now?.totals.audio_s ?? 0).toLocaleString("en")}</b> s of speech since the start
      </p>
    </div>
  );
}

/** Four numbers of the last ten seconds. */
export function RecentNumbers() {
  const recent = tick.value?.lately;
  const rows = recent?.rows_per_batch.vocoder;
  const first_ms = recent?.first_audio_ms.p50;
  return (
    <div class="numbers">
      <dl>
        <LabelledNumber name="waiting" value={String(tick.value?.waiting ?? "–")} />
        <LabelledNumber name="rows per batch" value={rows?.toFixed(1) ?? "–"} />
        <LabelledNumber name="until the first sound" value={first_ms == null ? "–" : formatMs(first_ms)} />
        <LabelledNumber name="speech made in a second" value={recent?.audio_per_s.toFixed(1) ?? "–"} unit="s" />
      </dl>
    </div>
  );
}

const OF_WINDOW = ["max_wait_ms", "min_wait_ms", "early_rows"];

export function Policy() {
  const policy = tick.value?.policy ?? hello.value?.policy ?? "";
  const waits = policy === "window" || policy === "bypass";
  const settings = Object.entries(hello.value?.settings ?? {}).filter(([name]) => waits || !OF_WINDOW.includes(name));
  return (
    <section class="policy" aria-labelledby="policy-title">
      <h2 id="policy-title">
        Policy: <span class="roman">{policy || "…"}</span>
      </h2>
      <p>{POLICIES[policy] ?? ""}</p>
      <dl>
        {settings.map(([name, value]) => (
          <div key={name}>
            <dt>{LABELS[name] ?? name}</dt>
            <dd>{formatSetting(name, value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function formatSetting(name: string, value: number | boolean | null): string {
  if (value === null) return "no limit";
  if (typeof value === "boolean") return value ? "on" : "off";
  return name.endsWith("_ms") ? formatMs(value) : String(value);
}

function percent(shares: number[]): string {
  return shares.length ? `${Math.round((100 * shares.reduce((sum, share) => sum + share, 0)) / shares.length)} %` : "…";
}
