// The same text in two voices or by two models, synthesised in parallel; switch between them while they play.
import { signal } from "@preact/signals";
import type { Clip } from "../clip";
import { player } from "../player";
import type { SpeechRequest } from "../request";
import { displayName, models, request, shownClip, startClip, stop, voices } from "../state";
import { formatMs } from "../time";
import { wordAt } from "../words";

const MODEL = "model:"; // before the names of models: a voice has none
const other = signal("am_michael");
const pair = signal<[Clip, Clip] | null>(null);

export function Compare() {
  const clips = pair.value;
  const playing = player.clip.value;
  return (
    <section class="compare" aria-labelledby="compare-title">
      <h2 id="compare-title">Compare two voices{models.value.length > 1 ? " or models" : ""}</h2>
      <label class="field">
        <span>Compare with</span>
        <select id="other" value={other.value} onChange={(event) => (other.value = event.currentTarget.value)}>
          {models.value.length > 1 && (
            <optgroup label="The same voice by another model">
              {models.value.map((model) => (
                <option key={model} value={MODEL + model}>
                  {model}
                </option>
              ))}
            </optgroup>
          )}
          <optgroup label="Another voice">
            {voices.value.map(({ id, label }) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </optgroup>
        </select>
      </label>
      <div class="row">
        <button type="button" class="plain framed" disabled={!request.value.text.trim()} onClick={speakBoth}>
          Speak both
        </button>
        <div class="switch" role="group" aria-label="What to play">
          {(["A", "B"] as const).map((letter, n) => (
            <button
              key={letter}
              type="button"
              disabled={!clips}
              aria-pressed={clips !== null && playing === clips[n]}
              onClick={() => switchTo(n)}
            >
              <b>{letter}</b> {clips ? name(clips[n]!) : ""}
            </button>
          ))}
        </div>
      </div>
      {clips ? (
        <p class="faint">
          Both were asked for at the same time: the first sound of A came after {first(clips[0])}, of B after{" "}
          {first(clips[1])}.
        </p>
      ) : (
        <p class="empty">
          Both speak the same text. Switching continues at the same word.
        </p>
      )}
    </section>
  );
}

function speakBoth(): void {
  stop();
  const a = startClip(request.value, true);
  const b = startClip({ ...request.value, ...changed() }, true);
  pair.value = [a, b];
  shownClip.value = a;
  player.open(a);
}

/** What the second request has of its own. */
function changed(): Partial<SpeechRequest> {
  if (other.value.startsWith(MODEL)) return { model: other.value.slice(MODEL.length) };
  return { voice: [{ name: other.value, weight: 1 }] };
}

/** Continue with the other clip at the current word. */
function switchTo(n: number): void {
  const clip = pair.value![n]!;
  const current = player.clip.value;
  const word = current ? wordAt(current.words.value, player.at_s.value) : -1;
  const from_s = player.playing.value && current !== clip ? (clip.words.value[word]?.start ?? 0) : 0;
  shownClip.value = clip;
  player.open(clip, from_s);
}

function name({ request: { voice, model } }: Clip): string {
  const speakers = voice.map((part) => displayName(part.name)).join(" + ");
  return model ? `${speakers}, ${model}` : speakers;
}

const first = (clip: Clip) => (clip.first_ms.value === null ? "…" : formatMs(clip.first_ms.value));
