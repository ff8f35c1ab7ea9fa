// The voices: searched and filtered, each with a line of description, and previewed before it is chosen.
import { useComputed, useSignal } from "@preact/signals";
import { Icon } from "../icons";
import { fetchSimilar, type Voice } from "../server";
import { addVoice, displayName, fail, heard, hearAll, preview, removeVoice, request, selectVoice, voices } from "../state";
import { deleteVoice, VOICE_SUFFIXES, voiceFile } from "./own-voices";

const ALL = "";
const QUALITIES = { best: "best", good: "good", fair: "fair" } as const;
type Quality = keyof typeof QUALITIES;
const TRAITS = ["deep", "high", "slow", "fast", "calm", "lively", "dark", "bright"]; // words of the descriptions

/** The grade of Kokoro's author in three steps; voices without a grade count as fair. */
export function quality(voice: Voice): Quality {
  if (/^[AB]/.test(voice.grade)) return "best";
  return voice.grade.startsWith("C") ? "good" : "fair";
}

export function languageName(voice: Voice): string {
  return /\((.*), [\w ]+\)/.exec(voice.label)?.[1] ?? voice.language;
}

export function Voices() {
  const search = useSignal("");
  const language = useSignal<string | null>(null); // null: that of the chosen voice
  const gender = useSignal(ALL);
  const best = useSignal(ALL);
  const alike = useSignal<string[] | null>(null); // a voice and the others, the most alike first
  const chosen = request.value.voice[0]!.name;
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
  if (alike.value) {
    const order = alike.value;
    const place = (voice: Voice) => (order.includes(voice.id) ? order.indexOf(voice.id) : order.length); // added since
    found.sort((one, other) => place(one) - place(other));
  }
  const groups = new Map<string, Voice[]>();
  for (const voice of found) {
    const title = alike.value ? `Similar to ${displayName(alike.value[0]!)}` : groupTitle(voice);
    groups.set(title, [...(groups.get(title) ?? []), voice]);
  }
  const canSpeak = found.filter((voice) => !voice.needs);
  async function showSimilar(): Promise<void> {
    try {
      alike.value = [chosen, ...(await fetchSimilar(chosen))];
    } catch (error) {
      fail(error, () => void showSimilar());
    }
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
      <div class="chips" role="group" aria-label="Traits">
        {TRAITS.map((trait) => (
          <button
            key={trait}
            type="button"
            class="chip"
            aria-pressed={words(search.value).includes(trait)}
            onClick={() => (search.value = toggled(search.value, trait))}
          >
            {trait}
          </button>
        ))}
        <button
          type="button"
          class="chip"
          aria-pressed={alike.value !== null}
          onClick={() => (alike.value ? (alike.value = null) : void showSimilar())}
        >
          similar to {displayName(alike.value?.[0] ?? chosen)}
        </button>
      </div>
      <div class="row">
        <button
          type="button"
          class="plain framed"
          title="Speak the first sentence of the text in each of them"
          disabled={!canSpeak.length || !request.value.text.trim()}
          onClick={() => (heard.value ? (heard.value = null) : void hearAll(canSpeak))}
        >
          {heard.value ? "Stop" : `Hear all ${canSpeak.length}`}
        </button>
        <label class="plain framed file">
          Add a voice file
          <input
            type="file"
            id="voice-file"
            accept={VOICE_SUFFIXES.join(",")}
            onChange={(event) => {
              voiceFile.value = event.currentTarget.files?.[0] ?? null;
              event.currentTarget.value = "";
            }}
          />
        </label>
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

function groupTitle(voice: Voice): string {
  return `${languageName(voice)}, ${voice.gender === "neutral" ? "your own" : voice.gender}`;
}

function words(search: string): string[] {
  return search.toLowerCase().split(/\s+/).filter(Boolean);
}

/** The search with a word that it lacked, or without one that it had. */
function toggled(search: string, word: string): string {
  const all = words(search);
  return (all.includes(word) ? all.filter((each) => each !== word) : [...all, word]).join(" ");
}

/** Whether every word of the search is in what is known of the voice. */
function matches(voice: Voice, search: string): boolean {
  const known = `${voice.id} ${voice.label} ${voice.description ?? ""} ${quality(voice)} quality`.toLowerCase();
  return words(search).every((word) => known.includes(word));
}

function Card({ voice }: { voice: Voice }) {
  const name = displayName(voice.id);
  const parts = request.value.voice;
  const chosen = parts.some((part) => part.name === voice.id);
  const blended = chosen && parts.length > 1;
  return (
    <li class="card" data-chosen={chosen} data-heard={heard.value === voice.id} data-missing={Boolean(voice.needs)}>
      <button type="button" class="name" aria-pressed={chosen} title={voice.id} onClick={() => selectVoice(voice.id)}>
        <span>
          {name} <small>{voice.needs ? "not installed" : (voice.access ?? `${quality(voice)} quality`)}</small>
        </span>
        <span class="description">{voice.description}</span>
      </button>
      <button
        type="button"
        class="icon small"
        aria-label={`Preview ${name}`}
        title="Preview"
        disabled={Boolean(voice.needs)}
        onClick={() => preview(voice)}
      >
        <Icon name="play" />
      </button>
      {voice.yours ? (
        <button type="button" class="icon small" aria-label={`Delete ${name}`} title="Delete" onClick={() => void deleteVoice(voice)}>
          <Icon name="bin" />
        </button>
      ) : null}
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
