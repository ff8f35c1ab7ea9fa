// The most recent batches: their rows, padding, reason and duration.
import { useComputed } from "@preact/signals";
import type { Batch } from "./events";
import { formatMs } from "../time";
import { hello, recent } from "./stats";

/** Why a batch took no more rows. */
const REASONS: Record<string, string> = {
  free: "the device was free, and nothing else was waiting",
  full: "no more rows fit",
  cost: "one more row would have taken longer than it was worth",
  deadline: "one more row would have made a listener wait too long",
  window: "the waiting time was over",
  early: "enough rows were waiting",
  quiet: "no second row came",
  bypass: "a first chunk runs alone",
  retry: "a part of a batch that had failed",
};

const MAX_BATCHES = 8;
const MAX_ROWS = 64; // drawn; the number below counts all
const BLOCK_HEIGHT = 144; // pixels

export function RecentBatches() {
  const latest = useComputed(() =>
    recent.value
      .filter((batch) => batch.outcome !== "running")
      .slice(-MAX_BATCHES),
  );
  return (
    <section class="recent" aria-labelledby="recent-title">
      <h2 id="recent-title">Last batches, the newest on the right</h2>
      {latest.value.length === 0 ? <p class="empty">None yet. Speak or simulate load to see some.</p> : null}
      <ol>
        {latest.value.map((batch) => (
          <Card key={batch.id} batch={batch} />
        ))}
      </ol>
      <dl class="reasons">
        {[...new Set(latest.value.map(({ reason }) => reason))].map((reason) => (
          <div key={reason}>
            <dt>{reason}</dt>
            <dd>{REASONS[reason] ?? ""}</dd>
          </div>
        ))}
      </dl>
      {latest.value.length && latest.value.every((batch) => batch.padding === 0) ? (
        <p class="faint">
          This device runs rows in parallel without padding. On a GPU, the hatched part of a row is padding.
        </p>
      ) : null}
    </section>
  );
}

function Card({ batch }: { batch: Batch }) {
  const longest = Math.max(...batch.rows.map((row) => row.padded));
  const rows = batch.rows.slice(0, MAX_ROWS);
  const rowHeight = Math.min(9, Math.max(2, BLOCK_HEIGHT / rows.length - 2));
  const unit = hello.value?.units[batch.stage] ?? "";
  return (
    <li data-rows={batch.rows.length} data-stage={batch.stage} data-reason={batch.reason}>
      <div class="block" aria-hidden="true">
        {rows.map((row, n) => (
          <span key={n} style={{ width: `${(100 * row.padded) / longest}%`, height: `${rowHeight}px` }}>
            <b data-class={row.class} style={{ width: `${(100 * row.size) / row.padded}%` }} />
          </span>
        ))}
        {batch.rows.length > MAX_ROWS ? <small>and {batch.rows.length - MAX_ROWS} more</small> : null}
      </div>
      <p>
        <i>{batch.stage}</i> {batch.rows.length} {batch.rows.length === 1 ? "row" : "rows"}
      </p>
      <p class="faint">
        {batch.outcome === "done" ? batch.reason : batch.outcome},{" "}
        <b>{formatMs(batch.ms ?? 0)}</b>
        <span class="hidden">
          , {batch.padded} {unit} in total, {Math.round(100 * batch.padding)} % padding
        </span>
      </p>
    </li>
  );
}
