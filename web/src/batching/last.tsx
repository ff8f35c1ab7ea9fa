// The last batches, one by one: a rectangle of rows, what is padding in them, why they left, how long they took.
import { useComputed } from "@preact/signals";
import type { Batch } from "./events";
import { hello, recent } from "./feed";

const SHOWN = 8;
const MOST_ROWS = 64; // drawn; the number beneath is always the true one
const TALL = 144; // pixels of a full block

export function Last() {
  const last = useComputed(() =>
    recent.value
      .filter((batch) => batch.outcome !== "running")
      .slice(-SHOWN)
      .reverse(),
  );
  return (
    <section class="last" aria-labelledby="last-title">
      <h2 id="last-title">Last batches</h2>
      {last.value.length === 0 ? <p class="empty">None yet: speak, or let a crowd in.</p> : null}
      <ol>
        {last.value.map((batch) => (
          <Card key={batch.id} batch={batch} />
        ))}
      </ol>
      {last.value.length && last.value.every((batch) => batch.padding === 0) ? (
        <p class="faint">
          This device runs rows side by side and pads nothing. On a GPU, the hatched part of a row would be padding.
        </p>
      ) : null}
    </section>
  );
}

function Card({ batch }: { batch: Batch }) {
  const longest = Math.max(...batch.rows.map((row) => row.padded));
  const rows = batch.rows.slice(0, MOST_ROWS);
  const tall = Math.min(9, Math.max(2, TALL / rows.length - 2));
  const unit = hello.value?.units[batch.stage] ?? "";
  return (
    <li data-rows={batch.rows.length} data-stage={batch.stage} data-reason={batch.reason}>
      <div class="block" aria-hidden="true">
        {rows.map((row, n) => (
          <span key={n} style={{ width: `${(100 * row.padded) / longest}%`, height: `${tall}px` }}>
            <b data-class={row.class} style={{ width: `${(100 * row.size) / row.padded}%` }} />
          </span>
        ))}
        {batch.rows.length > MOST_ROWS ? <small>and {batch.rows.length - MOST_ROWS} more</small> : null}
      </div>
      <p>
        <i>{batch.stage}</i> {batch.rows.length} {batch.rows.length === 1 ? "row" : "rows"}
      </p>
      <p class="faint">
        {batch.outcome === "done" ? batch.reason : batch.outcome},{" "}
        <b>{(batch.ms ?? 0).toFixed((batch.ms ?? 0) < 10 ? 1 : 0)}</b> ms
        <span class="hidden">
          , {batch.padded} {unit} in all, {Math.round(100 * batch.padding)} % padding
        </span>
      </p>
    </li>
  );
}
