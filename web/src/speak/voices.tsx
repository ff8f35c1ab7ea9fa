// Voice cards of one language by gender; each can be previewed before it is chosen.
import { useComputed, useSignal } from "@preact/signals";
import { Icon } from "../icons";
import type { Voice } from "../server";
import { addVoice, displayName, preview, removeVoice, request, selectVoice, voices } from "../state";

export function Voices() {
  const selected = useSignal("");
  const languages = useComputed(() => new Map(voices.value.map((voice) => [voice.language, languageName(voice)])));
  const ownLanguage = voices.value.find((voice) => voice.id === request.value.voice[0]?.name)?.language ?? "en-us";
  const language = selected.value || ownLanguage;
  return (
    <section class="voices" aria-labelledby="voices-title">
      <div class="row spread">
        <h2 id="voices-title">Voice</h2>
        <label class="inline">
          <span class="hidden">Language of the voices</span>
          <select value={language} onChange={(event) => (selected.value = event.currentTarget.value)}>
            {[...languages.value].map(([code, name]) => (
              <option key={code} value={code}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {voices.value.length === 0 ? <p class="empty">Loading voices…</p> : null}
      {["female", "male"].map((gender) => {
        const group = voices.value.filter((voice) => voice.language === language && voice.gender === gender);
        return group.length ? (
          <div key={gender} role="group" aria-label={`${languages.value.get(language)}, ${gender}`}>
            <h3>{gender}</h3>
            <ul class="cards">
              {group.map((voice) => (
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
  const name = displayName(voice.id);
  const parts = request.value.voice;
  const chosen = parts.some((part) => part.name === voice.id);
  const blended = chosen && parts.length > 1;
  return (
    <li class="card" data-chosen={chosen}>
      <button type="button" class="name" aria-pressed={chosen} title={voice.id} onClick={() => selectVoice(voice.id)}>
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
        aria-label={`Preview ${name}`}
        title="Preview"
        onClick={() => void preview(voice)}
      >
        <Icon name="play" />
      </button>
      {blended ? (
        <button
          type="button"
          class="icon small"
          aria-label={`Remove ${name} from the blend`}
          title="Remove from the blend"
          onClick={() => removeVoice(voice.id)}
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
          onClick={() => addVoice(voice.id)}
        >
          <Icon name="plus" />
        </button>
      )}
    </li>
  );
}

function languageName(voice: Voice): string {
  return /\((.*), \w+\)/.exec(voice.name)?.[1] ?? voice.language;
}
