// Five charts of the last minute.
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colour, theme } from "../theme";
import { HISTORY_S, type Point, points } from "./stats";

interface Chart {
  title: string;
  unit: string;
  lines: { name: string; ink: string; of: (point: Point) => number | null }[];
  minTop: number; // the smallest top of the y axis
}

const CHARTS: Chart[] = [
  {
    title: "Waiting",
    unit: "jobs",
    minTop: 4,
    lines: [{ name: "waiting", ink: "ink", of: (point) => point.waiting }],
  },
  {
    title: "Batch size",
    unit: "rows",
    minTop: 4,
    lines: [
      { name: "acoustic", ink: "c-next", of: (point) => point.rows[0]! },
      { name: "vocoder", ink: "c-first", of: (point) => point.rows[1]! },
    ],
  },
  {
    title: "Padding",
    unit: "%",
    minTop: 20,
    lines: [
      { name: "acoustic", ink: "c-next", of: (point) => point.padding[0]! },
      { name: "vocoder", ink: "c-first", of: (point) => point.padding[1]! },
    ],
  },
  {
    title: "Until the first sound",
    unit: "s",
    minTop: 0.2,
    lines: [
      { name: "half within", ink: "c-first", of: (point) => seconds(point.first_ms[0]!) },
      { name: "95 % within", ink: "c-bulk", of: (point) => seconds(point.first_ms[1]!) },
    ],
  },
  {
    title: "Speech made in a second",
    unit: "s",
    minTop: 2,
    lines: [
      { name: "all", ink: "c-6", of: (point) => point.speech[0]! },
      { name: "in time", ink: "c-4", of: (point) => point.speech[1]! },
    ],
  },
];

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}

export function Charts() {
  return (
    <section class="charts" aria-labelledby="charts-title">
      <h2 id="charts-title">Last minute</h2>
      <div>
        {CHARTS.map((chart) => (
          <Plot key={chart.title} chart={chart} />
        ))}
      </div>
    </section>
  );
}

function Plot({ chart }: { chart: Chart }) {
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = container.current!;
    // The plot holds its colours, so another theme needs another plot.
    let plot: uPlot | null = null;
    const stop = effect(() => {
      theme.value;
      plot?.destroy();
      plot = new uPlot(options(chart, box.clientWidth), data(chart, points.peek()), box);
    });
    const follow = effect(() => plot?.setData(data(chart, points.value)));
    const resize = new ResizeObserver(() => plot?.setSize({ width: box.clientWidth, height: HEIGHT }));
    resize.observe(box);
    return () => {
      stop();
      follow();
      resize.disconnect();
      plot?.destroy();
    };
  }, []);
  const now = points.value.at(-1);
  return (
    <figure>
      <figcaption>
        <b>{chart.title}</b> <span class="faint">{chart.unit}</span>
        <span class="values">
          {chart.lines.map(({ name, ink, of }) => (
            <span key={name} data-ink={ink}>
              {name} <b>{format(now ? of(now) : null)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={container} aria-hidden="true" />
    </figure>
  );
}

const HEIGHT = 120;

function format(value: number | null): string {
  if (value === null) return "–";
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(value < 1 ? 2 : 1);
}

function data(chart: Chart, history: Point[]): uPlot.AlignedData {
  const now = history.at(-1)?.t ?? 0;
  return [history.map(({ t }) => t - now), ...chart.lines.map(({ of }) => history.map(of))];
}

function options(chart: Chart, width: number): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: colour("ink-2"),
    grid: { stroke: colour("rule"), width: 1 },
    ticks: { show: false },
    font: `11px ${colour("sans")}`,
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 16, 0, 0],
    scales: {
      x: { time: false, range: [-HISTORY_S, 0] },
      y: { range: (_, __, high) => [0, Math.max(chart.minTop, (high ?? 0) * 1.1)] },
    },
    axes: [
      { ...axis, size: 22, values: (_, ticks) => ticks.map((t) => (t === 0 ? "now" : `${t} s`)), space: 60 },
      { ...axis, size: 48, space: 28 },
    ],
    series: [
      {},
      ...chart.lines.map(({ ink }) => ({ stroke: colour(ink), width: 1.6, points: { show: false }, spanGaps: false })),
    ],
  };
}
