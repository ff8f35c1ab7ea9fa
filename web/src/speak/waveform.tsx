// The waveform with a line where each chunk ends, and the text below it, word by word.
import { useComputed, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Canvas } from "../canvas";
import { type Clip, PEAK_SAMPLES, RATE } from "../clip";
import { player } from "../player";
import { at_s, Seek, span_s } from "../seek";
import { shownClip } from "../state";
import { colour } from "../theme";
import { blankMarks, wordAt } from "../words";

const HEIGHT = 148;
const TOP = 20; // room for the numbers of the chunks
const STROKE = 3; // pixels
const LINE_GAP = 17;

export function Waveform() {
  const clip = shownClip.value;
  if (!clip) return null;
  return (
    <section class="waveform" aria-labelledby="waveform-title">
      <h2 id="waveform-title" class="hidden">
        Waveform and text
      </h2>
      <div class="staff">
        <Canvas height={HEIGHT} draw={draw} label="Waveform, with a line where each chunk ends" />
        <Seek clip={clip} label="Playback position, in seconds" />
      </div>
      <SpokenText key={clip.id} clip={clip} />
    </section>
  );
}

function draw(pen: CanvasRenderingContext2D, width: number): void {
  const middle = TOP + (HEIGHT - TOP) / 2;
  pen.fillStyle = colour("staff");
  for (let line = -2; line <= 2; line++) pen.fillRect(0, Math.round(middle + line * LINE_GAP), width, 1);
  const clip = shownClip.value;
  if (!clip) return;
  const scale = width / span_s(clip); // pixels per second
  const n = clip.count.value;
  drawPeaks(pen, clip.peaks, n, scale, at_s(clip), middle);
  drawChunkEnds(pen, clip, scale, width, middle);
  if (player.clip.value === clip && n) {
    pen.fillStyle = colour("accent");
    pen.fillRect(Math.min(at_s(clip) * scale, width - 1.5), TOP - 2, 1.5, HEIGHT - TOP);
  }
}

function drawPeaks(
  pen: CanvasRenderingContext2D,
  peaks: number[],
  n: number,
  scale: number,
  played_s: number,
  middle: number,
): void {
  const maxHeight = (HEIGHT - TOP) / 2 - 8;
  const perStroke = (STROKE / scale) * (RATE / PEAK_SAMPLES); // peaks
  const end = (n / RATE) * scale;
  const [ink, accent] = [colour("wave"), colour("accent")];
  for (let x = 0, from = 0; x < end; x += STROKE, from += perStroke) {
    let peak = 0;
    const until = Math.max(Math.floor(from) + 1, from + perStroke);
    for (let at = Math.floor(from); at < until && at < peaks.length; at++) peak = Math.max(peak, peaks[at]!);
    const height = Math.max(1.5, Math.sqrt(peak) * maxHeight);
    pen.fillStyle = x / scale < played_s ? accent : ink;
    pen.fillRect(x, middle - height, STROKE - 1, 2 * height);
  }
}

function drawChunkEnds(pen: CanvasRenderingContext2D, clip: Clip, scale: number, width: number, middle: number): void {
  const [top, height] = [middle - 2 * LINE_GAP, 4 * LINE_GAP + 1];
  pen.font = `italic 13px ${colour("serif")}`;
  pen.fillStyle = colour("ink-2");
  let previous = 0;
  const numbered = clip.chunkEnds.value.length > 1; // a lone number means nothing
  clip.chunkEnds.value.forEach((end, n) => {
    const x = Math.min((end / RATE) * scale, width - 1);
    pen.fillStyle = colour("ink-2");
    if (numbered) pen.fillText(String(n + 1), previous + 3, TOP - 5);
    const last = clip.state.value === "whole" && n === clip.chunkEnds.value.length - 1;
    pen.fillStyle = colour("ink");
    if (last) {
      pen.fillRect(x - 3, top, 4, height);
      pen.fillRect(x - 7, top, 1, height);
    } else pen.fillRect(x, top, 1, height);
    previous = x;
  });
}

/** The text as typed: each word that has arrived can be pressed, and the one being spoken is highlighted. */
function SpokenText({ clip }: { clip: Clip }) {
  const paragraph = useRef<HTMLParagraphElement>(null);
  const current = useComputed(() => {
    const ended = clip.state.value === "whole" && !player.playing.value && player.at_s.value >= clip.duration_s.value;
    return player.clip.value === clip && !ended ? wordAt(clip.words.value, player.at_s.value) : -1;
  });
  useSignalEffect(() => {
    const n = current.value;
    clip.words.value;
    if (paragraph.current && player.clip.value === clip) paragraph.current.dataset.at = String(player.at_s.value);
    paragraph.current?.querySelector("[aria-current]")?.removeAttribute("aria-current");
    paragraph.current?.querySelector(`[data-n="${n}"]`)?.setAttribute("aria-current", "true");
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
    if (step) paragraph.current?.querySelector<HTMLElement>(`[data-n="${Number(target.dataset.n) + step}"]`)?.focus();
  };
  return (
    <p
      class="spoken-text"
      ref={paragraph}
      role="group"
      aria-label="Spoken text: press a word to play from there, arrow keys to move"
      onClick={jump}
      onKeyDown={onKey}
    >
      {textWithWords(clip)}
    </p>
  );
}

const MARK = "\0"; // stands for each character of a mark, which is not shown

function textWithWords(clip: Clip) {
  const text = blankMarks(clip.request.text, MARK);
  const shown = (from: number, to?: number) => text.slice(from, to).replaceAll(MARK, "");
  let at = 0;
  const words = clip.words.value.map((word, n) => {
    const before = shown(at, word.from);
    at = word.to;
    return [
      before,
      <span key={n} role="button" tabIndex={n ? -1 : 0} data-n={n} data-start={word.start} data-end={word.end}>
        {shown(word.from, word.to)}
      </span>,
    ];
  });
  return [
    ...words,
    <span key="rest" class={clip.state.value === "whole" ? "" : "faint"}>
      {shown(at)}
    </span>,
  ];
}
