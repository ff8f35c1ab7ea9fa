// The score: the waveform on its staff, a bar line where a chunk ends, and the text beneath it, word by word.
import { useComputed, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Canvas } from "../canvas";
import { type Clip, PEAK, RATE } from "../clip";
import { shown } from "../desk";
import { estimate } from "../estimate";
import { player } from "../player";
import { colour } from "../theme";
import { wordAt } from "../words";

const HEIGHT = 148;
const TOP = 20; // room for the numbers of the bars
const STROKE = 3;
const LINE_GAP = 17;

export function Score() {
  const clip = shown.value;
  return (
    <section class="score" aria-labelledby="score-title">
      <h2 id="score-title" class="hidden">
        What is heard
      </h2>
      <div class="staff">
        <Canvas height={HEIGHT} draw={drawn} label="Waveform, with a bar line where each chunk ends" />
        {clip ? <Seek clip={clip} /> : <p class="empty over">Press Speak: the sound is drawn here while it is made.</p>}
      </div>
      {clip ? <Lyrics key={clip.id} clip={clip} /> : null}
    </section>
  );
}

/** How many seconds the staff is wide. */
function span_s(clip: Clip): number {
  return Math.max(clip.duration_s.value, clip.coming.value ? 1.1 * estimate(clip.ask).speech_s : 0, 0.5);
}

function at_s(clip: Clip): number {
  return player.clip.value === clip ? player.at_s.value : 0;
}

function Seek({ clip }: { clip: Clip }) {
  const seek = (event: { currentTarget: HTMLInputElement }) => {
    const s = event.currentTarget.valueAsNumber;
    if (player.clip.value === clip) player.seek(Math.min(s, clip.duration_s.value));
    else player.open(clip, s);
  };
  return (
    <input
      class="seek"
      type="range"
      aria-label="Place in the speech, in seconds"
      min={0}
      max={span_s(clip).toFixed(2)}
      step={0.01}
      value={at_s(clip).toFixed(2)}
      aria-valuetext={`${at_s(clip).toFixed(1)} seconds`}
      onInput={seek}
    />
  );
}

function drawn(pen: CanvasRenderingContext2D, width: number): void {
  const middle = TOP + (HEIGHT - TOP) / 2;
  pen.fillStyle = colour("staff");
  for (let line = -2; line <= 2; line++) pen.fillRect(0, Math.round(middle + line * LINE_GAP), width, 1);
  const clip = shown.value;
  if (!clip) return;
  const scale = width / span_s(clip); // pixels a second
  const n = clip.count.value;
  strokes(pen, clip.peaks, n, scale, at_s(clip), middle);
  bars(pen, clip, scale, width, middle);
  if (player.clip.value === clip && n) {
    pen.fillStyle = colour("accent");
    pen.fillRect(Math.min(at_s(clip) * scale, width - 1.5), TOP - 2, 1.5, HEIGHT - TOP);
  }
}

function strokes(
  pen: CanvasRenderingContext2D,
  peaks: number[],
  n: number,
  scale: number,
  heard_s: number,
  middle: number,
): void {
  const reach = (HEIGHT - TOP) / 2 - 8;
  const perStroke = (STROKE / scale) * (RATE / PEAK); // peaks
  const end = (n / RATE) * scale;
  const [ink, accent] = [colour("wave"), colour("accent")];
  for (let x = 0, from = 0; x < end; x += STROKE, from += perStroke) {
    let loud = 0;
    const until = Math.max(Math.floor(from) + 1, from + perStroke);
    for (let at = Math.floor(from); at < until && at < peaks.length; at++) loud = Math.max(loud, peaks[at]!);
    const tall = Math.max(1.5, Math.sqrt(loud) * reach);
    pen.fillStyle = x / scale < heard_s ? accent : ink;
    pen.fillRect(x, middle - tall, STROKE - 1, 2 * tall);
  }
}

function bars(pen: CanvasRenderingContext2D, clip: Clip, scale: number, width: number, middle: number): void {
  const [top, tall] = [middle - 2 * LINE_GAP, 4 * LINE_GAP + 1];
  pen.font = `italic 13px ${colour("serif")}`;
  pen.fillStyle = colour("ink-2");
  let began = 0;
  clip.borders.value.forEach((border, n) => {
    const x = Math.min((border / RATE) * scale, width - 1);
    pen.fillStyle = colour("ink-2");
    pen.fillText(String(n + 1), began + 3, TOP - 5);
    const last = clip.state.value === "whole" && n === clip.borders.value.length - 1;
    pen.fillStyle = colour("ink");
    if (last) {
      pen.fillRect(x - 3, top, 4, tall);
      pen.fillRect(x - 7, top, 1, tall);
    } else pen.fillRect(x, top, 1, tall);
    began = x;
  });
}

/** The text as it was typed; each word that has been made can be pressed, and the one that is heard is lit. */
function Lyrics({ clip }: { clip: Clip }) {
  const here = useRef<HTMLParagraphElement>(null);
  const lit = useComputed(() => (player.clip.value === clip ? wordAt(clip.words.value, player.at_s.value) : -1));
  useSignalEffect(() => {
    const n = lit.value;
    clip.words.value;
    if (here.current && player.clip.value === clip) here.current.dataset.at = String(player.at_s.value);
    here.current?.querySelector("[aria-current]")?.removeAttribute("aria-current");
    here.current?.querySelector(`[data-n="${n}"]`)?.setAttribute("aria-current", "true");
  });
  const jump = (event: Event) => {
    const n = (event.target as HTMLElement).dataset.n;
    if (n === undefined) return;
    const from_s = clip.words.value[Number(n)]!.start;
    if (player.clip.value === clip) player.play(true, from_s);
    else player.open(clip, from_s);
  };
  const onKey = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      jump(event);
    }
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) here.current?.querySelector<HTMLElement>(`[data-n="${Number(target.dataset.n) + step}"]`)?.focus();
  };
  return (
    <p
      class="lyrics"
      ref={here}
      role="group"
      aria-label="Text; press a word to hear it from there, arrows to move"
      onClick={jump}
      onKeyDown={onKey}
    >
      {pieces(clip)}
    </p>
  );
}

function pieces(clip: Clip) {
  const { text } = clip.ask;
  let at = 0;
  const made = clip.words.value.map((word, n) => {
    const before = text.slice(at, word.from);
    at = word.to;
    return [
      before,
      <span key={n} role="button" tabIndex={n ? -1 : 0} data-n={n} data-start={word.start} data-end={word.end}>
        {text.slice(word.from, word.to)}
      </span>,
    ];
  });
  return [
    ...made,
    <span key="rest" class={clip.state.value === "whole" ? "" : "faint"}>
      {text.slice(at)}
    </span>,
  ];
}
