// Simulated listeners: one by one against together, and two policies against each other.
import { signal } from "@preact/signals";
import { Clip } from "../clip";
import { estimate } from "../estimate";
import { Icon } from "../icons";
import { player } from "../player";
import { ProblemBox } from "../problem-box";
import { explain, type Problem } from "../problems";
import { DEFAULT_REQUEST } from "../request";
import { formatMs, formatSeconds } from "../time";
import { type Mode, mix, Run, simulate, textOf } from "./simulation";
import { hello, recent } from "./stats";

const SMALL = 8; // rows per batch: up to this many, the device is a processor with a few cores

/** Two runs of the same load that are compared; the second is the one that should win. */
class Experiment {
  readonly runs = signal<Run[]>([]);
  readonly problem = signal<Problem | null>(null);

  constructor(readonly modes: [Mode, Mode]) {}
}

const together = new Experiment([
  { id: "one-by-one", title: "One by one", sequential: true },
  { id: "together", title: "Together" },
]);
const policies = new Experiment([
  { id: "window", title: "window", policy: "window" },
  { id: "deadline", title: "deadline", policy: "deadline" },
]);

const chosenSize = signal<number | null>(null); // null: as fits the device
const running = signal<AbortController | null>(null);

const isSmall = () => Number(hello.value?.settings.max_batch_size ?? SMALL) <= SMALL;
const size = () => chosenSize.value ?? (isSmall() ? 4 : 16);

/** The main experiment: a server that serves one request at a time, against this one. */
export function Load() {
  return (
    <section class="load" aria-labelledby="load-title">
      <h2 id="load-title">One by one, or together?</h2>
      <Verdict experiment={together} />
      <Controls experiment={together} label="Start" />
      <ProblemBox problem={together.problem.value} />
      {together.runs.value.length === 0 ? (
        <p class="empty">
          The same {size()} listeners ask twice. First each waits until the one before is finished, as with a server that
          serves one request at a time. Then all are served together. {expectation()}
        </p>
      ) : (
        <Results experiment={together} />
      )}
    </section>
  );
}

export function PolicyComparison() {
  return (
    <section class="load policies" aria-labelledby="compare-title">
      <h2 id="compare-title">Compare two policies</h2>
      <p class="faint">
        A policy decides when a batch starts. <b>deadline</b>, the default, starts when the device is free, with what is
        most urgent. <b>window</b>, which many servers use, waits up to{" "}
        {String(hello.value?.settings.max_wait_ms ?? 50)} ms for more requests.
      </p>
      <Verdict experiment={policies} />
      <Controls experiment={policies} label="Compare" />
      <ProblemBox problem={policies.problem.value} />
      <Results experiment={policies} />
    </section>
  );
}

function Controls({ experiment, label }: { experiment: Experiment; label: string }) {
  const busy = running.value !== null;
  const id = `size-${experiment.modes[1].id}`;
  return (
    <div class="row">
      <label for={id}>Listeners</label>
      <input
        id={id}
        class="size"
        type="range"
        min={2}
        max={64}
        value={size()}
        disabled={busy}
        onInput={(event) => (chosenSize.value = event.currentTarget.valueAsNumber)}
      />
      <output for={id}>{size()}</output>
      {busy ? (
        <button key="stop" type="button" class="primary" onClick={() => running.value?.abort()}>
          <Icon name="stop" /> Stop
        </button>
      ) : (
        <button key="start" type="button" class="primary" disabled={!hello.value} onClick={() => void start(experiment)}>
          <Icon name="play" /> {label}
        </button>
      )}
    </div>
  );
}

/** How long both runs will take on this device, from the batches it ran before. */
function expectation(): string {
  const speed = measuredSpeed();
  if (!speed) return "The first run also measures how fast this machine is.";
  const speech_s = estimate({ ...DEFAULT_REQUEST, text: textOf(size()) }).speech_s;
  return `On this machine that takes about ${formatSeconds((2 * speech_s) / speed)}.`;
}

/** Seconds of speech that the device makes in a second; null if it has made none lately. */
function measuredSpeed(): number | null {
  const done = recent.value.filter(({ outcome }) => outcome === "done");
  const busy_s = done.reduce((sum, batch) => sum + (batch.ms ?? 0) / 1000, 0);
  const frames = done
    .filter(({ stage }) => stage === "vocoder")
    .reduce((sum, batch) => sum + batch.rows.reduce((rows, row) => rows + row.size, 0), 0);
  return busy_s > 0 && frames > 0 ? (frames * FRAME_S) / busy_s : null;
}

const FRAME_S = 0.025;

function Results({ experiment }: { experiment: Experiment }) {
  if (!experiment.runs.value.length) return null;
  return (
    <div class="runs" data-busy={running.value !== null}>
      {experiment.runs.value.map((run) => (
        <RunResult key={run.mode.id} run={run} />
      ))}
    </div>
  );
}

function RunResult({ run }: { run: Run }) {
  const n = run.clients.value.length;
  const done = run.clients.value.filter((state) => state === "done").length;
  const total_ms = run.total_ms.value;
  const first = (share: number) => (run.percentile(share) === null ? "…" : formatMs(run.percentile(share)!));
  return (
    <div
      class="run"
      data-mode={run.mode.id}
      data-done={done}
      data-total-ms={total_ms ?? ""}
      data-most-requests={Math.max(0, ...run.batches)}
    >
      <h3>{run.mode.title}</h3>
      <div class="clients" role="img" aria-label={`${done} of ${n} listeners served`}>
        {run.clients.value.map((state, at) => (
          <span key={at} data-state={state} />
        ))}
      </div>
      <dl>
        <dt>all served after</dt>
        <dd>{total_ms === null ? `${done} of ${n} served${left(run, done, n)}` : formatMs(total_ms)}</dd>
        <dt>first sound, half of them within</dt>
        <dd>{first(0.5)}</dd>
        <dt>first sound, the slowest</dt>
        <dd>{first(1)}</dd>
        <dt>speech made in a second</dt>
        <dd>{total_ms === null ? "…" : `${((1000 * run.speech_s) / total_ms).toFixed(1)} s`}</dd>
        <dt>requests in one pass</dt>
        <dd>{run.batches.length ? `${mean(run.batches).toFixed(1)}, at most ${Math.max(...run.batches)}` : "…"}</dd>
        <dt>told to try again</dt>
        <dd>{run.refused.size}</dd>
      </dl>
      {run.error.value ? <p class="error">{run.error.value}</p> : null}
      {total_ms !== null && run.speech_s > 0 ? (
        <button type="button" class="plain framed" onClick={() => playAll(run)}>
          <Icon name="play" /> Play all at once
        </button>
      ) : null}
    </div>
  );
}

/** The time left, from the pace so far. */
function left(run: Run, done: number, n: number): string {
  if (!done || done === n) return "";
  const passed_ms = performance.now() - run.started_ms;
  return `, about ${formatMs((passed_ms / done) * (n - done))} left`;
}

function Verdict({ experiment }: { experiment: Experiment }) {
  const [one, other] = experiment.runs.value;
  if (!one?.total_ms.value || !other?.total_ms.value) return <p class="verdict" role="status" />;
  const [median, otherMedian] = [one.percentile(0.5), other.percentile(0.5)];
  if (median === null || otherMedian === null) return <p class="verdict" role="status" />;
  const gain = one.total_ms.value / other.total_ms.value;
  return (
    <p class="verdict" role="status">
      {other.mode.title}, everyone was served in <b>{formatMs(other.total_ms.value)}</b> instead of{" "}
      {formatMs(one.total_ms.value)} (<b class="speedup">{times(gain)}</b>), and half of them heard something within{" "}
      <b>{formatMs(otherMedian)}</b> instead of {formatMs(median)} (<b>{times(median / otherMedian)}</b>).
      {experiment === together && isSmall() ? (
        <span class="faint">
          {" "}
          This server runs on a processor with few cores, which one sentence keeps busy already. On a graphics card the
          gain in speech per second is about five times.
        </span>
      ) : null}
    </p>
  );
}

function times(ratio: number): string {
  if (ratio > 0.97 && ratio < 1.03) return "no difference";
  return ratio >= 1 ? `${ratio.toFixed(1)}× sooner` : `${(1 / ratio).toFixed(1)}× later`;
}

async function start(experiment: Experiment): Promise<void> {
  const stop = new AbortController();
  running.value = stop;
  experiment.problem.value = null;
  experiment.runs.value = [];
  try {
    for (const mode of experiment.modes) {
      const run = new Run(mode);
      experiment.runs.value = [...experiment.runs.value, run];
      await simulate(run, size(), stop.signal);
      if (stop.signal.aborted) break;
    }
  } catch (error) {
    experiment.problem.value = explain(error);
    experiment.runs.value = experiment.runs.value.slice(0, -1);
  }
  running.value = null;
}

function playAll(run: Run): void {
  const clip = new Clip({ ...DEFAULT_REQUEST, text: "" }, `${run.clips.length} voices at once`);
  clip.append(mix(run));
  clip.end("whole");
  player.open(clip);
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
