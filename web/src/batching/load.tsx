// Simulate many clients, and compare two policies under the same load.
import { signal } from "@preact/signals";
import { Clip } from "../clip";
import { Icon } from "../icons";
import { player } from "../player";
import { DEFAULT_REQUEST } from "../request";
import { errorText } from "../server";
import { mix, Run, simulate } from "./simulation";
import { hello, tick } from "./stats";

const COMPARED = ["deadline", "window"];
const size = signal(8);
const runs = signal<Run[]>([]);
const errorMessage = signal("");
const running = signal<AbortController | null>(null);

export function Load() {
  const busy = running.value !== null;
  return (
    <section class="load" aria-labelledby="load-title">
      <h2 id="load-title">Simulate load</h2>
      <div class="row">
        <label for="size">Clients</label>
        <input
          id="size"
          type="range"
          min={1}
          max={64}
          value={size.value}
          disabled={busy}
          onInput={(event) => (size.value = event.currentTarget.valueAsNumber)}
        />
        <output for="size">{size.value}</output>
        {busy ? (
          <button key="stop" type="button" class="primary" onClick={() => running.value?.abort()}>
            <Icon name="stop" /> Stop
          </button>
        ) : (
          <>
            <button key="all" type="button" class="primary" onClick={() => void runAll([])}>
              <Icon name="play" /> Run
            </button>
            <button key="both" type="button" class="plain framed" onClick={() => void runAll(COMPARED)}>
              Compare deadline and window
            </button>
          </>
        )}
      </div>
      <p class="error" role="alert">
        {errorMessage.value}
      </p>
      {runs.value.length === 0 ? (
        <p class="empty">
          Each client opens its own connection from this browser and requests a word, a sentence or more, all at the
          same time. Requests that cannot be served in time are refused at once and tried again. The second button runs
          the load twice: with batches formed whenever the device is free, and with batches that wait up to{" "}
          {String(hello.value?.settings.max_wait_ms ?? 50)} ms for more rows.
        </p>
      ) : (
        <div class="runs" data-busy={busy}>
          {runs.value.map((run) => (
            <RunResult key={run.policy} run={run} />
          ))}
        </div>
      )}
      <Comparison />
    </section>
  );
}

function RunResult({ run }: { run: Run }) {
  const done = run.clients.value.filter((state) => state === "done").length;
  const total_s = (run.total_ms.value ?? 0) / 1000;
  const first = (share: number) => (run.percentile(share) === null ? "…" : `${Math.round(run.percentile(share)!)} ms`);
  return (
    <div
      class="run"
      data-policy={run.policy}
      data-done={done}
      data-total-ms={run.total_ms.value ?? ""}
      data-most-rows={Math.max(0, ...run.batches)}
    >
      <h3>{run.policy}</h3>
      <div class="clients" role="img" aria-label={`${done} of ${run.clients.value.length} clients served`}>
        {run.clients.value.map((state, n) => (
          <span key={n} data-state={state} />
        ))}
      </div>
      <dl>
        <dt>first audio, p50</dt>
        <dd>{first(0.5)}</dd>
        <dt>first audio, p95</dt>
        <dd>{first(0.95)}</dd>
        <dt>all served after</dt>
        <dd>{run.total_ms.value === null ? "…" : `${total_s.toFixed(1)} s`}</dd>
        <dt>speech per second</dt>
        <dd>{run.total_ms.value === null ? "…" : `${(run.speech_s / total_s).toFixed(1)} s`}</dd>
        <dt>refused at first</dt>
        <dd>{run.refused.size}</dd>
        <dt>rows per batch</dt>
        <dd>{run.batches.length ? `${mean(run.batches).toFixed(1)}, at most ${Math.max(...run.batches)}` : "…"}</dd>
      </dl>
      {run.error.value ? <p class="error">{run.error.value}</p> : null}
      {run.total_ms.value !== null && run.speech_s > 0 ? (
        <button type="button" class="plain framed" onClick={() => playAll(run)}>
          <Icon name="play" /> Play all at once
        </button>
      ) : null}
    </div>
  );
}

function Comparison() {
  const [one, other] = runs.value;
  if (!one?.total_ms.value || !other?.total_ms.value) return <p class="comparison" role="status" />;
  const firstAudio = other.percentile(0.5)! / one.percentile(0.5)!;
  const total = other.total_ms.value / one.total_ms.value;
  return (
    <p class="comparison" role="status">
      Compared with <i>{other.policy}</i>, <i>{one.policy}</i> delivers the median first audio{" "}
      <b id="speedup">{times(firstAudio)}</b> and serves all clients <b>{times(total)}</b>.
    </p>
  );
}

function times(ratio: number): string {
  return ratio >= 1 ? `${ratio.toFixed(2)}× sooner` : `${(1 / ratio).toFixed(2)}× later`;
}

/** Run the load once under each policy, or under the server's own if none is named. */
async function runAll(policies: string[]): Promise<void> {
  const stop = new AbortController();
  running.value = stop;
  errorMessage.value = "";
  runs.value = [];
  try {
    for (const policy of policies.length ? policies : [tick.value?.policy ?? "deadline"]) {
      const run = new Run(policy);
      runs.value = [...runs.value, run];
      await simulate(run, size.value, policies.length > 0, stop.signal);
      if (stop.signal.aborted) break;
    }
  } catch (error) {
    errorMessage.value = errorText(error);
    runs.value = runs.value.slice(0, -1);
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
