// A crowd at the press of a button, and two policies side by side before the same crowd.
import { signal } from "@preact/signals";
import { Clip } from "../clip";
import { OPENING } from "../ask";
import { Icon } from "../icons";
import { player } from "../player";
import { worded } from "../server";
import { play, Run, together } from "./crowd";
import { hello, tick } from "./feed";

const AGAINST = ["deadline", "window"];
const size = signal(8);
const runs = signal<Run[]>([]);
const trouble = signal("");
const stopper = signal<AbortController | null>(null);

export function Load() {
  const busy = stopper.value !== null;
  return (
    <section class="load" aria-labelledby="load-title">
      <h2 id="load-title">Let a crowd in</h2>
      <div class="row">
        <label for="size">Callers</label>
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
          <button key="stop" type="button" class="primary" onClick={() => stopper.value?.abort()}>
            <Icon name="stop" /> Stop
          </button>
        ) : (
          <>
            <button key="all" type="button" class="primary" onClick={() => void perform([])}>
              <Icon name="play" /> All together
            </button>
            <button key="both" type="button" class="plain framed" onClick={() => void perform(AGAINST)}>
              deadline against window
            </button>
          </>
        )}
      </div>
      <p class="trouble" role="alert">
        {trouble.value}
      </p>
      {runs.value.length === 0 ? (
        <p class="empty">
          Each caller opens a connection of its own from this browser and asks for a word, a sentence or more, all at
          the same moment. Whoever could not be served in time is told so at once, and comes again. The second button
          does it twice: with batches formed whenever the device is free, and with batches that wait{" "}
          {String(hello.value?.settings.max_wait_ms ?? 50)} ms for company.
        </p>
      ) : (
        <div class="runs" data-busy={busy}>
          {runs.value.map((run) => (
            <Seats key={run.policy} run={run} />
          ))}
        </div>
      )}
      <Verdict />
    </section>
  );
}

function Seats({ run }: { run: Run }) {
  const done = run.seats.value.filter((seat) => seat === "done").length;
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
      <div class="seats" role="img" aria-label={`${done} of ${run.seats.value.length} callers served`}>
        {run.seats.value.map((seat, n) => (
          <span key={n} data-seat={seat} />
        ))}
      </div>
      <dl>
        <dt>first audio, p50</dt>
        <dd>{first(0.5)}</dd>
        <dt>first audio, p95</dt>
        <dd>{first(0.95)}</dd>
        <dt>everyone served</dt>
        <dd>{run.total_ms.value === null ? "…" : `${total_s.toFixed(1)} s`}</dd>
        <dt>speech a second</dt>
        <dd>{run.total_ms.value === null ? "…" : `${(run.speech_s / total_s).toFixed(1)} s`}</dd>
        <dt>told to come again</dt>
        <dd>{run.turned.size}</dd>
        <dt>rows in a batch</dt>
        <dd>{run.batches.length ? `${mean(run.batches).toFixed(1)}, at most ${Math.max(...run.batches)}` : "…"}</dd>
      </dl>
      {run.error.value ? <p class="trouble">{run.error.value}</p> : null}
      {run.total_ms.value !== null && run.speech_s > 0 ? (
        <button type="button" class="plain framed" onClick={() => hear(run)}>
          <Icon name="play" /> Hear them all at once
        </button>
      ) : null}
    </div>
  );
}

function Verdict() {
  const [one, other] = runs.value;
  const told = one?.total_ms.value && other?.total_ms.value ? [one, other] : null;
  if (!told) return <p class="verdict" role="status" />;
  const early = told[1]!.percentile(0.5)! / told[0]!.percentile(0.5)!;
  const soon = told[1]!.total_ms.value! / told[0]!.total_ms.value!;
  return (
    <p class="verdict" role="status">
      With <i>{told[0]!.policy}</i> the median caller hears the first word <b id="speedup">{times(early)}</b>, and
      everyone is served <b>{times(soon)}</b>, than with <i>{told[1]!.policy}</i>.
    </p>
  );
}

function times(ratio: number): string {
  return ratio >= 1 ? `${ratio.toFixed(2)}× sooner` : `${(1 / ratio).toFixed(2)}× later`;
}

/** The crowd once under each policy; under the server's own where none is named. */
async function perform(policies: string[]): Promise<void> {
  const stop = new AbortController();
  stopper.value = stop;
  trouble.value = "";
  runs.value = [];
  try {
    for (const policy of policies.length ? policies : [tick.value?.policy ?? "deadline"]) {
      const run = new Run(policy);
      runs.value = [...runs.value, run];
      await play(run, size.value, policies.length > 0, stop.signal);
      if (stop.signal.aborted) break;
    }
  } catch (error) {
    trouble.value = worded(error);
    runs.value = runs.value.slice(0, -1);
  }
  stopper.value = null;
}

function hear(run: Run): void {
  const clip = new Clip({ ...OPENING, text: "" }, `${run.clips.length} voices at once`);
  clip.append(together(run));
  clip.end("whole");
  player.open(clip);
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
