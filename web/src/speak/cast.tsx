// The cast of a dialogue: who speaks with which voice. Without a cast, the text has one voice.
import { namesIn } from "../dialogue";
import { Icon } from "../icons";
import { request, updateRequest, voices } from "../state";

export const DIALOGUE = {
  text: "Anna: Did you hear that?\nBen: No. What was it?\nAnna: [emphasis:whispered]Somebody is at the door.[/emphasis]\nBen: It was [emphasis:strong]only[/emphasis] the wind.",
  cast: [
    { name: "Anna", voice: "af_heart" },
    { name: "Ben", voice: "am_michael" },
  ],
};

export function Cast() {
  const { cast, text } = request.value;
  const others = namesIn(text).filter((name) => !cast.some((speaker) => speaker.name === name));
  return (
    <section class="cast" aria-labelledby="cast-title">
      <div class="row spread">
        <h2 id="cast-title">Cast</h2>
        <button type="button" class="plain" onClick={() => add(others[0] ?? "", cast.length)}>
          <Icon name="plus" /> Add {others[0] ?? "a speaker"}
        </button>
      </div>
      {cast.length === 0 ? (
        <p class="empty">
          One voice for all. For a dialogue, begin lines with a name, <code>Anna: Ready?</code>, and add the speakers.
        </p>
      ) : (
        <ul class="speakers">
          {cast.map((speaker, n) => (
            <li key={n}>
              <input
                type="text"
                aria-label={`Name of speaker ${n + 1}`}
                placeholder="Name"
                maxLength={40}
                value={speaker.name}
                onInput={(event) => change(n, { name: event.currentTarget.value.replace(":", "") })}
              />
              <select
                aria-label={`Voice of ${speaker.name || `speaker ${n + 1}`}`}
                value={speaker.voice}
                onChange={(event) => change(n, { voice: event.currentTarget.value })}
              >
                {voices.value.map(({ id, label }) => (
                  <option key={id} value={id}>
                    {label}
                  </option>
                ))}
              </select>
              <button
                type="button"
                class="icon small"
                aria-label={`Remove ${speaker.name || `speaker ${n + 1}`}`}
                onClick={() => updateRequest({ cast: cast.filter((_, other) => other !== n) })}
              >
                <Icon name="cross" />
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const FIRST_VOICES = ["af_heart", "am_michael", "bf_emma", "bm_george", "af_bella", "am_puck"];

function add(name: string, n: number): void {
  const { cast } = request.value;
  updateRequest({ cast: [...cast, { name, voice: FIRST_VOICES[n % FIRST_VOICES.length]! }] });
}

function change(n: number, fields: { name?: string; voice?: string }): void {
  const cast = request.value.cast.map((speaker, other) => (other === n ? { ...speaker, ...fields } : speaker));
  updateRequest({ cast });
}
