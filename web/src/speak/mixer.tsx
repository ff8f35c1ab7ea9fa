// Several voices become one, by weight; and the rhythm of one in the timbre of another.
import { ask, cast, change, takeOut, titled, weigh } from "../desk";
import { writeBlend } from "../blend";
import { Icon } from "../icons";

export function Mixer() {
  const { voice, style } = ask.value;
  return (
    <section class="mixer" aria-labelledby="mixer-title">
      <h2 id="mixer-title">Blend</h2>
      {voice.length < 2 ? (
        <p class="empty">
          <b>{titled(voice[0]!.name)}</b> sings alone. Press + on another card to mix it in.
        </p>
      ) : (
        <ul class="faders">
          {voice.map(({ name, weight }) => (
            <li key={name}>
              <label for={`weight-${name}`}>{titled(name)}</label>
              <input
                id={`weight-${name}`}
                type="range"
                min={-2}
                max={4}
                step={0.5}
                value={weight}
                onInput={(event) => weigh(name, event.currentTarget.valueAsNumber)}
              />
              <output for={`weight-${name}`}>{weight < 0 ? `away ${-weight}` : weight}</output>
              <button
                type="button"
                class="icon small"
                aria-label={`Take ${titled(name)} out`}
                onClick={() => takeOut(name)}
              >
                <Icon name="cross" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <p class="blend">
        <code id="blend">{writeBlend(voice)}</code>
      </p>
      <label class="field">
        <span>Rhythm and intonation of</span>
        <select id="style" value={style} onChange={(event) => change({ style: event.currentTarget.value })}>
          <option value="">its own</option>
          {cast.value.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </section>
  );
}
