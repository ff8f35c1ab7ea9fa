// Both stages as the staves of a score: time runs to the right, a batch is a block, each of its rows a line in it.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Canvas } from "../canvas";
import { calm, colour } from "../theme";
import { type Batch, STAGES } from "./events";
import { hatch } from "./hatch";
import { hello, now_s, recent, tick } from "./feed";

const SPANS_S = [2, 10, 60];
const LANE = 118;
const HEAD = 22; // above each staff, for what is written there
const HEIGHT = 2 * LANE + 22;
const span_s = signal(10);
const beat = signal(0);

export function Lanes() {
  useEffect(beating, []);
  return (
    <section class="lanes" aria-labelledby="lanes-title">
      <div class="row spread">
        <h2 id="lanes-title">Score</h2>
        <div class="row">
          <ul class="legend" aria-label="Colours">
            <li data-class="first">first chunks</li>
            <li data-class="next">later chunks</li>
            <li data-class="bulk">bulk</li>
            <li data-class="padding">padding</li>
          </ul>
          <label class="inline">
            <span class="hidden">Time shown</span>
            <select value={span_s.value} onChange={(event) => (span_s.value = Number(event.currentTarget.value))}>
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
          draw={drawn}
          label="Batches of both stages over time; the list of the last batches tells the same in words"
        />
        {recent.value.length === 0 ? (
          <p class="empty over">Silence. Let a crowd in, and its batches are drawn here as they run.</p>
        ) : null}
      </div>
    </section>
  );
}

const FRAME_MS = 50; // the model may need the same cores

/** The picture moves by itself while there is anything in it to move. */
function beating(): () => void {
  let frame = 0;
  let drawn_ms = 0;
  const step = (at_ms: number) => {
    const last = recent.value.at(-1);
    const still = calm.matches || !last || last.start + (last.ms ?? 1e9) / 1000 < now_s() - span_s.value - 1;
    if (!still && at_ms - drawn_ms >= FRAME_MS) {
      drawn_ms = at_ms;
      beat.value += 1;
    }
    frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
  return () => cancelAnimationFrame(frame);
}

function drawn(pen: CanvasRenderingContext2D, width: number): void {
  beat.value;
  if (calm.matches) tick.value;
  const now = now_s();
  const scale = width / span_s.value;
  const most = Math.max(
    4,
    Number(hello.value?.settings.max_batch_size ?? 4),
    ...recent.value.map((batch) => batch.rows.length),
  );
  seconds(pen, width, now, scale);
  STAGES.forEach((stage, n) => {
    const top = n * LANE + HEAD;
    const bottom = (n + 1) * LANE - 8;
    pen.fillStyle = colour("staff");
    for (let line = 0; line < 5; line++) pen.fillRect(0, Math.round(top + (line * (bottom - top)) / 4), width, 1);
    const batches = recent.value.filter((batch) => batch.stage === stage);
    for (const batch of batches) block(pen, batch, now, scale, width, bottom, Math.min(16, (bottom - top) / most));
    written(pen, stage, 0, n * LANE + 14, "ink-2", 15);
  });
}

function seconds(pen: CanvasRenderingContext2D, width: number, now: number, scale: number): void {
  const every = span_s.value > 20 ? 10 : span_s.value > 5 ? 1 : 0.5;
  for (let t = Math.ceil((now - span_s.value) / every) * every; t < now; t += every) {
    const x = width - (now - t) * scale;
    pen.fillStyle = colour("rule");
    pen.fillRect(Math.round(x), HEAD, 1, 2 * LANE - HEAD - 8);
  }
  written(pen, `${span_s.value} seconds ago`, 0, HEIGHT - 4, "ink-2", 13);
  pen.textAlign = "right";
  written(pen, "now", width, HEIGHT - 4, "ink-2", 13);
  pen.textAlign = "left";
}

function block(
  pen: CanvasRenderingContext2D,
  batch: Batch,
  now: number,
  scale: number,
  width: number,
  bottom: number,
  tall: number,
): void {
  const until = batch.ms === null ? now : batch.start + batch.ms / 1000;
  const x = width - (now - batch.start) * scale;
  const right = Math.min(width, width - (now - until) * scale);
  if (right < 0) return;
  const wide = Math.max(1.5, right - x - 1);
  const longest = Math.max(...batch.rows.map((row) => row.padded));
  const top = bottom - batch.rows.length * tall;
  batch.rows.forEach((row, n) => {
    const y = bottom - (n + 1) * tall;
    const speech = wide * (row.size / longest);
    pen.globalAlpha = batch.outcome === "running" ? 0.6 : 1;
    pen.fillStyle = colour(`c-${row.class}`);
    pen.fillRect(x, y, Math.max(1, speech), Math.max(1, tall - 1));
    if (row.padded > row.size) {
      pen.fillStyle = hatch(pen);
      pen.fillRect(x + speech, y, wide * (row.padded / longest) - speech, Math.max(1, tall - 1));
    }
    pen.globalAlpha = 1;
  });
  pen.strokeStyle = colour("ink");
  pen.lineWidth = 1;
  pen.strokeRect(x - 0.5, top - 1.5, wide + 1, batch.rows.length * tall + 2);
  if (batch.outcome === "failed" || batch.outcome === "lost")
    written(pen, "×", x + wide / 2 - 4, top - 4, "accent", 16);
  label(pen, batch, Math.max(0, x), Math.min(wide, right), top);
}

function label(pen: CanvasRenderingContext2D, batch: Batch, x: number, wide: number, top: number): void {
  const tries = [`${batch.reason}, ${Math.round(batch.ms ?? 0)} ms`, batch.reason];
  pen.font = `italic 13px ${colour("serif")}`;
  const text = tries.find((each) => pen.measureText(each).width < wide);
  if (text && batch.ms !== null) written(pen, text, x + 1, top - 5, "ink", 13);
}

function written(pen: CanvasRenderingContext2D, text: string, x: number, y: number, ink: string, size: number): void {
  pen.font = `italic ${size}px ${colour("serif")}`;
  pen.fillStyle = colour(ink);
  pen.fillText(text, x, y);
}
