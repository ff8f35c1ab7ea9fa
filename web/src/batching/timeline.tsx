// Batches of both stages over time: a block is a batch, each line in it a row.
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Canvas } from "../canvas";
import { colour, reducedMotion } from "../theme";
import { formatMs } from "../time";
import { type Batch, STAGES } from "./events";
import { paddingPattern } from "./padding";
import { hello, now_s, recent, tick } from "./stats";

const SPANS_S = [2, 10, 60];
const LONGEST_SHARE = 0.4; // of the width that the longest batch may take by itself
const STAGE_HEIGHT = 118;
const HEAD = 22; // above each stage, for labels
const HEIGHT = 2 * STAGE_HEIGHT + 22;
const chosenSpan_s = signal(0); // 0: as fits the batches
const span_s = computed(() => {
  if (chosenSpan_s.value) return chosenSpan_s.value;
  const longest_s = Math.max(0, ...recent.value.slice(-20).map((batch) => (batch.ms ?? batch.predicted_ms) / 1000));
  return SPANS_S.find((s) => s >= 10 && longest_s <= LONGEST_SHARE * s) ?? SPANS_S.at(-1)!;
});
const frameNumber = signal(0);

export function Timeline() {
  useEffect(animate, []);
  return (
    <section class="timeline" aria-labelledby="timeline-title">
      <div class="row spread">
        <h2 id="timeline-title">Timeline</h2>
        <div class="row">
          <ul class="legend" aria-label="Colours">
            <li data-class="first">first chunks</li>
            <li data-class="next">later chunks</li>
            <li data-class="bulk">bulk</li>
            <li data-class="padding">padding</li>
          </ul>
          <label class="inline">
            <span class="hidden">Time shown</span>
            <select
              value={chosenSpan_s.value}
              onChange={(event) => (chosenSpan_s.value = Number(event.currentTarget.value))}
            >
              <option value={0}>fit</option>
              {SPANS_S.map((s) => (
                <option key={s} value={s}>
                  {s} s
                </option>
              ))}
            </select>
          </label>
        </div>
      </div>
      <div class="staff">
        <Canvas
          height={HEIGHT}
          draw={draw}
          label="Batches of both stages over time; the list of recent batches has the same in words"
        />
        {recent.value.length === 0 ? (
          <p class="empty over">No batches yet. Press Start above to see some here.</p>
        ) : null}
      </div>
    </section>
  );
}

const FRAME_MS = 50; // slower than the screen: the model may need the same cores

/** Redraw while a batch is visible. */
function animate(): () => void {
  let frame = 0;
  let drawn_ms = 0;
  const step = (at_ms: number) => {
    const last = recent.value.at(-1);
    const still = reducedMotion.matches || !last || last.start + (last.ms ?? 1e9) / 1000 < now_s() - span_s.value - 1;
    if (!still && at_ms - drawn_ms >= FRAME_MS) {
      drawn_ms = at_ms;
      frameNumber.value += 1;
    }
    frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
  return () => cancelAnimationFrame(frame);
}

function draw(pen: CanvasRenderingContext2D, width: number): void {
  frameNumber.value;
  if (reducedMotion.matches) tick.value;
  const now = now_s();
  const scale = width / span_s.value;
  const maxRows = Math.max(
    4,
    Number(hello.value?.settings.max_batch_size ?? 4),
    ...recent.value.map((batch) => batch.rows.length),
  );
  if (recent.value.length) drawSeconds(pen, width, now, scale);
  STAGES.forEach((stage, n) => {
    const top = n * STAGE_HEIGHT + HEAD;
    const bottom = (n + 1) * STAGE_HEIGHT - 8;
    if (!recent.value.length) return; // the staff would strike out the words above it
    pen.fillStyle = colour("staff");
    for (let line = 0; line < 5; line++) pen.fillRect(0, Math.round(top + (line * (bottom - top)) / 4), width, 1);
    const batches = recent.value.filter((batch) => batch.stage === stage);
    for (const batch of batches) drawBatch(pen, batch, now, scale, width, bottom, Math.min(16, (bottom - top) / maxRows));
    write(pen, stage, 0, n * STAGE_HEIGHT + 14, "ink-2", 15);
  });
}

function drawSeconds(pen: CanvasRenderingContext2D, width: number, now: number, scale: number): void {
  const every = span_s.value > 20 ? 10 : span_s.value > 5 ? 1 : 0.5;
  for (let t = Math.ceil((now - span_s.value) / every) * every; t < now; t += every) {
    const x = width - (now - t) * scale;
    pen.fillStyle = colour("rule");
    pen.fillRect(Math.round(x), HEAD, 1, 2 * STAGE_HEIGHT - HEAD - 8);
  }
  write(pen, `${span_s.value} seconds ago`, 0, HEIGHT - 4, "ink-2", 13);
  pen.textAlign = "right";
  write(pen, "now", width, HEIGHT - 4, "ink-2", 13);
  pen.textAlign = "left";
}

function drawBatch(
  pen: CanvasRenderingContext2D,
  batch: Batch,
  now: number,
  scale: number,
  width: number,
  bottom: number,
  rowHeight: number,
): void {
  const until = batch.ms === null ? now : batch.start + batch.ms / 1000;
  const x = width - (now - batch.start) * scale;
  const right = Math.min(width, width - (now - until) * scale);
  if (right < 0) return;
  const blockWidth = Math.max(1.5, right - x - 1);
  const longest = Math.max(...batch.rows.map((row) => row.padded));
  const top = bottom - batch.rows.length * rowHeight;
  batch.rows.forEach((row, n) => {
    const y = bottom - (n + 1) * rowHeight;
    const speech = blockWidth * (row.size / longest);
    pen.globalAlpha = batch.outcome === "running" ? 0.6 : 1;
    pen.fillStyle = colour(`c-${row.class}`);
    pen.fillRect(x, y, Math.max(1, speech), Math.max(1, rowHeight - 1));
    if (row.padded > row.size) {
      pen.fillStyle = paddingPattern(pen);
      pen.fillRect(x + speech, y, blockWidth * (row.padded / longest) - speech, Math.max(1, rowHeight - 1));
    }
    pen.globalAlpha = 1;
  });
  pen.strokeStyle = colour("ink");
  pen.lineWidth = 1;
  pen.strokeRect(x - 0.5, top - 1.5, blockWidth + 1, batch.rows.length * rowHeight + 2);
  if (batch.outcome === "failed" || batch.outcome === "lost")
    write(pen, "×", x + blockWidth / 2 - 4, top - 4, "accent", 16);
  drawLabel(pen, batch, Math.max(0, x), Math.min(blockWidth, right), top);
}

function drawLabel(pen: CanvasRenderingContext2D, batch: Batch, x: number, blockWidth: number, top: number): void {
  const labels = [`${batch.reason}, ${formatMs(batch.ms ?? 0)}`, batch.reason];
  pen.font = `italic 13px ${colour("serif")}`;
  const text = labels.find((label) => pen.measureText(label).width < blockWidth);
  if (text && batch.ms !== null) write(pen, text, x + 1, top - 5, "ink", 13);
}

function write(pen: CanvasRenderingContext2D, text: string, x: number, y: number, ink: string, size: number): void {
  pen.font = `italic ${size}px ${colour("serif")}`;
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = colour("paper"); // the lines of the staff do not strike the text through
  pen.strokeText(text, x, y);
  pen.fillStyle = colour(ink);
  pen.fillText(text, x, y);
}
