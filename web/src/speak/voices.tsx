// Voice cards: one language at a time, women beside men; each can be heard before it is chosen.
import { useComputed, useSignal } from "@preact/signals";
import { ask, blendIn, cast, choose, preview, takeOut, titled } from "../desk";
import { Icon } from "../icons";
import type { Voice } from "../server";

export function Voices() {
  const picked = useSignal("");
  const languages = useComputed(() => new Map(cast.value.map((voice) => [voice.language, spoken(voice)])));
  const own = cast.value.find((voice) => voice.id === ask.value.voice[0]?.name)?.language ?? "en-us";
  const language = picked.value || own;
  return (
    <section class="voices" aria-labelledby="voices-title">
      <div class="row spread">
        <h2 id="voices-title">Voice</h2>
        <label class="inline">
          <span class="hidden">Language of the voices shown</span>
          <select value={language} onChange={(event) => (picked.value = event.currentTarget.value)}>
            {[...languages.value].map(([code, name]) => (
              <option key={code} value={code}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {cast.value.length === 0 ? <p class="empty">The voices are being fetched.</p> : null}
      {["female", "male"].map((gender) => {
        const voices = cast.value.filter((voice) => voice.language === language && voice.gender === gender);
        return voices.length ? (
          <div key={gender} role="group" aria-label={`${languages.value.get(language)}, ${gender}`}>
            <h3>{gender}</h3>
            <ul class="cards">
              {voices.map((voice) => (
                <Card key={voice.id} voice={voice} />
              ))}
            </ul>
          </div>
        ) : null;
      })}
    </section>
  );
}

function Card({ voice }: { voice: Voice }) {
  const name = titled(voice.id);
  const parts = ask.value.voice;
  const chosen = parts.some((part) => part.name === voice.id);
  const blended = chosen && parts.length > 1;
  return (
    <li class="card" data-chosen={chosen}>
      <button type="button" class="name" aria-pressed={chosen} title={voice.id} onClick={() => choose(voice.id)}>
        {name}
        {voice.grade === "-" ? null : (
          <small title="Grade by Kokoro's author">
            <span class="hidden">, grade </span>
            {voice.grade}
          </small>
        )}
      </button>
      <button
        type="button"
        class="icon small"
        aria-label={`Hear ${name}`}
        title="Hear"
        onClick={() => void preview(voice)}
      >
        <Icon name="play" />
      </button>
      {blended ? (
        <button
          type="button"
          class="icon small"
          aria-label={`Take ${name} out of the blend`}
          title="Take out of the blend"
          onClick={() => takeOut(voice.id)}
        >
          <Icon name="cross" />
        </button>
      ) : (
        <button
          type="button"
          class="icon small"
          aria-label={`Add ${name} to the blend`}
          title="Add to the blend"
          disabled={chosen}
          onClick={() => blendIn(voice.id)}
        >
          <Icon name="plus" />
        </button>
      )}
    </li>
  );
}

function spoken(voice: Voice): string {
  return /\((.*), \w+\)/.exec(voice.name)?.[1] ?? voice.language;
}
