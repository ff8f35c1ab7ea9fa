// The policy in force and what it goes by.
import { Figure } from "../figure";
import { hello, standing, tick, why } from "./feed";

const POLICIES: Record<string, string> = {
  deadline:
    "A batch leaves when the device is free: the most urgent first, others join while they cost less than alone and make nobody late.",
  fifo: "A batch leaves when the device is free, in the order of arrival.",
  window: "A batch waits for company until its time is over or enough rows are there.",
  bypass: "First chunks go alone and at once; the others wait for company.",
};
const WORDED: Record<string, string> = {
  batching: "batching",
  max_batch_size: "rows in a batch, at most",
  max_queue: "jobs that may wait",
  first_audio_ms: "first audio due after, ms",
  cap_ms: "longest batch wanted, ms",
  first_chunks: "first chunks of a stream",
  max_wait_ms: "window waits at most, ms",
  min_wait_ms: "window, when quiet, ms",
  early_rows: "window leaves early at rows",
  max_batch_frames: "padded frames in a batch",
  max_batch_text: "characters in a batch",
};

export function Standing() {
  const now = tick.value;
  const policy = now?.policy ?? hello.value?.policy ?? "…";
  return (
    <div class="standing">
      <p>
        <span class="lamp" data-standing={standing.value} aria-hidden="true" />{" "}
        {standing.value === "live" ? "Live" : standing.value === "joining" ? "Joining" : why.value || "Not connected"}
      </p>
      <p>
        policy <b id="policy">{policy}</b>
        {now?.trial ? <span class="faint"> (a trial, {Math.ceil(now.trial.left_s)} s left)</span> : null}
      </p>
      <p>
        busy <b>{percent(Object.values(now?.lately.busy ?? {}))}</b>
      </p>
      <p>
        <b>{now?.totals.batches.toLocaleString("en") ?? "…"}</b> batches,{" "}
        <b>{Math.round(now?.totals.audio_s ?? 0).toLocaleString("en")}</b> s of speech so far
      </p>
    </div>
  );
}

/** The last ten seconds in four numbers. */
export function Lately() {
  const lately = tick.value?.lately;
  const rows = lately?.rows_per_batch.vocoder;
  const first_ms = lately?.first_audio_ms.p50;
  return (
    <div class="figures">
      <dl>
        <Figure name="wait now" value={String(tick.value?.waiting ?? "–")} />
        <Figure name="rows in a batch" value={rows?.toFixed(1) ?? "–"} />
        <Figure name="first audio, p50" value={first_ms == null ? "–" : String(Math.round(first_ms))} unit="ms" />
        <Figure name="of speech a second" value={lately?.audio_per_s.toFixed(1) ?? "–"} unit="s" />
      </dl>
    </div>
  );
}

export function Rules() {
  const settings = hello.value?.settings;
  const policy = tick.value?.policy ?? hello.value?.policy ?? "";
  return (
    <section class="rules" aria-labelledby="rules-title">
      <h2 id="rules-title">
        Played by <span class="roman">{policy || "…"}</span>
      </h2>
      <p>{POLICIES[policy] ?? ""}</p>
      <dl>
        {settings
          ? Object.entries(settings).map(([name, value]) => (
              <div key={name}>
                <dt>{WORDED[name] ?? name}</dt>
                <dd>{value === null ? "no limit" : value === true ? "on" : value === false ? "off" : value}</dd>
              </div>
            ))
          : null}
      </dl>
    </section>
  );
}

function percent(shares: number[]): string {
  return shares.length ? `${Math.round((100 * shares.reduce((sum, share) => sum + share, 0)) / shares.length)} %` : "…";
}
