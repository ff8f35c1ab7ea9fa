// The same text in two voices, made side by side; change over in the middle of a sentence.
import { signal } from "@preact/signals";
import { ask, cast, made, shown, stop, titled } from "../desk";
import type { Clip } from "../clip";
import { player } from "../player";
import { wordAt } from "../words";

const other = signal("am_michael");
const pair = signal<[Clip, Clip] | null>(null);

export function Compare() {
  const two = pair.value;
  const heard = player.clip.value;
  return (
    <section class="compare" aria-labelledby="compare-title">
      <h2 id="compare-title">A or B</h2>
      <label class="field">
        <span>Against</span>
        <select id="other" value={other.value} onChange={(event) => (other.value = event.currentTarget.value)}>
          {cast.value.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <div class="row">
        <button type="button" class="plain framed" disabled={!ask.value.text.trim()} onClick={begin}>
          Speak both
        </button>
        <div class="switch" role="group" aria-label="Which of the two is heard">
          {(["A", "B"] as const).map((letter, n) => (
            <button
              key={letter}
              type="button"
              disabled={!two}
              aria-pressed={two !== null && heard === two[n]}
              onClick={() => hear(n)}
            >
              <b>{letter}</b> {two ? name(two[n]!) : ""}
            </button>
          ))}
        </div>
      </div>
      {two ? (
        <p class="faint">
          First audio after {ms(two[0])} and {ms(two[1])}; rows in their batches: {two[0].batch.value ?? "…"} and{" "}
          {two[1].batch.value ?? "…"}.
        </p>
      ) : (
        <p class="empty">
          Both are asked for at once, so they may share a batch. Changing over goes on at the same word.
        </p>
      )}
    </section>
  );
}

function begin(): void {
  stop();
  const a = made(ask.value, true);
  const b = made({ ...ask.value, voice: [{ name: other.value, weight: 1 }] }, true);
  pair.value = [a, b];
  shown.value = a;
  player.open(a);
}

/** The other voice from the word that is being said. */
function hear(n: number): void {
  const clip = pair.value![n]!;
  const now = player.clip.value;
  const word = now ? wordAt(now.words.value, player.at_s.value) : -1;
  const from_s = player.playing.value && now !== clip ? (clip.words.value[word]?.start ?? 0) : 0;
  shown.value = clip;
  player.open(clip, from_s);
}

const name = (clip: Clip) => clip.ask.voice.map((part) => titled(part.name)).join(" + ");
const ms = (clip: Clip) => (clip.first_ms.value === null ? "…" : `${Math.round(clip.first_ms.value)} ms`);
