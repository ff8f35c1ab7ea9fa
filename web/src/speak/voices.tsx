// The voices: searched and filtered, each with a line of description, and previewed before it is chosen.
import { useComputed, useSignal } from "@preact/signals";
import { Icon } from "../icons";
import type { Voice } from "../server";
import { addVoice, displayName, preview, removeVoice, request, selectVoice, voices } from "../state";

const ALL = "";
const QUALITIES = { best: "best", good: "good", fair: "fair" } as const;
type Quality = keyof typeof QUALITIES;

/** The grade of Kokoro's author in three steps; voices without a grade count as fair. */
export function quality(voice: Voice): Quality {
  if (/^[AB]/.test(voice.grade)) return "best";
  return voice.grade.startsWith("C") ? "good" : "fair";
}

export function languageName(voice: Voice): string {
  return /\((.*), \w+\)/.exec(voice.label)?.[1] ?? voice.language;
}

export function Voices() {
  const search = useSignal("");
  const language = useSignal<string | null>(null); // null: that of the chosen voice
  const gender = useSignal(ALL);
  const best = useSignal(ALL);
  const languages = useComputed(() => new Map(voices.value.map((voice) => [voice.language, languageName(voice)])));
  const own = voices.value.find((voice) => voice.id === request.value.voice[0]?.name)?.language ?? "en-us";
  const shownLanguage = language.value ?? (search.value ? ALL : own);
  const found = voices.value.filter(
    (voice) =>
      (!shownLanguage || voice.language === shownLanguage) &&
      (!gender.value || voice.gender === gender.value) &&
      (!best.value || quality(voice) === best.value) &&
      matches(voice, search.value),
  );
  const groups = new Map<string, Voice[]>();
  for (const voice of found) {
    const title = `${languageName(voice)}, ${voice.gender}`;
    groups.set(title, [...(groups.get(title) ?? []), voice]);
  }
  return (
    <section class="voices" aria-labelledby="voices-title">
      <div class="row spread">
        <h2 id="voices-title">Voice</h2>
        <span class="faint" role="status">
          {voices.value.length ? `${found.length} of ${voices.value.length}` : ""}
        </span>
      </div>
      <div class="filters">
        <label class="search">
          <span class="hidden">Search the voices</span>
          <Icon name="search" />
          <input
            type="search"
            placeholder="Search, for example: deep"
            value={search.value}
            onInput={(event) => (search.value = event.currentTarget.value)}
          />
        </label>
        <Filter
          label="Language"
          value={shownLanguage}
          options={[[ALL, "all languages"], ...languages.value]}
          onChange={(value) => (language.value = value)}
        />
        <Filter
          label="Gender"
          value={gender.value}
          options={[
            [ALL, "any gender"],
            ["female", "female"],
            ["male", "male"],
          ]}
          onChange={(value) => (gender.value = value)}
        />
        <Filter
          label="Quality"
          value={best.value}
          options={[[ALL, "any quality"], ...Object.entries(QUALITIES)]}
          onChange={(value) => (best.value = value)}
        />
      </div>
      {voices.value.length === 0 ? <p class="empty">Loading voices…</p> : null}
      {voices.value.length && !found.length ? <p class="empty">No voice matches. Clear the search or a filter.</p> : null}
      <div class="list" tabIndex={0} role="region" aria-label="Voices found">
        {[...groups].map(([title, group]) => (
          <div key={title} role="group" aria-label={title}>
            <h3>{title}</h3>
            {group[0]!.needs ? (
              <p class="needs">
                Not installed on this server: it needs the extra <code>{group[0]!.needs}</code>.
              </p>
            ) : null}
            <ul class="cards">
              {group.map((voice) => (
                <Card key={voice.id} voice={voice} />
              ))}
            </ul>
          </div>
        ))}
      </div>
      <p class="faint">Quality follows the grades of Kokoro's author: how much good speech the voice was trained on.</p>
    </section>
  );
}

interface FilterProps {
  label: string;
  value: string;
  options: [string, string][];
  onChange: (value: string) => void;
}

function Filter({ label, value, options, onChange }: FilterProps) {
  return (
    <label class="inline">
      <span class="hidden">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Whether every word of the search is in what is known of the voice. */
function matches(voice: Voice, search: string): boolean {
  const known = `${voice.id} ${voice.label} ${voice.description ?? ""} ${quality(voice)} quality`.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => known.includes(word));
}

function Card({ voice }: { voice: Voice }) {
  const name = displayName(voice.id);
  const parts = request.value.voice;
  const chosen = parts.some((part) => part.name === voice.id);
  const blended = chosen && parts.length > 1;
  return (
    <li class="card" data-chosen={chosen} data-missing={Boolean(voice.needs)}>
      <button type="button" class="name" aria-pressed={chosen} title={voice.id} onClick={() => selectVoice(voice.id)}>
        <span>
          {name} <small>{voice.needs ? "not installed" : `${quality(voice)} quality`}</small>
        </span>
        <span class="description">{voice.description}</span>
      </button>
      <button
        type="button"
        class="icon small"
        aria-label={`Preview ${name}`}
        title="Preview"
        disabled={Boolean(voice.needs)}
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
