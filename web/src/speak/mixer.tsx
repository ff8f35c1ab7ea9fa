// Blend voices by weight, and use the prosody of another voice.
import { writeBlend } from "../blend";
import { Icon } from "../icons";
import { Slider } from "../slider";
import { displayName, removeVoice, request, setWeight, updateRequest, voices } from "../state";

export function Mixer() {
  const { voice, style } = request.value;
  return (
    <section class="mixer" aria-labelledby="mixer-title">
      <h2 id="mixer-title">Blend</h2>
      {voice.length < 2 ? (
        <p class="empty">
          <b>{displayName(voice[0]!.name)}</b> only. Press + on another voice to add it.
        </p>
      ) : (
        <ul class="faders">
          {voice.map(({ name, weight }) => (
            <li key={name}>
              <label for={`weight-${name}`}>{displayName(name)}</label>
              <Slider
                id={`weight-${name}`}
                min={-2}
                max={4}
                step={0.5}
                value={weight}
                neutral={0}
                onInput={(value) => setWeight(name, value)}
              />
              <output for={`weight-${name}`}>{weight < 0 ? `−${-weight}` : weight}</output>
              <button
                type="button"
                class="icon small"
                aria-label={`Remove ${displayName(name)}`}
                onClick={() => removeVoice(name)}
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
        <span>Use the prosody of</span>
        <select id="style" value={style} onChange={(event) => updateRequest({ style: event.currentTarget.value })}>
          <option value="">this voice</option>
          {voices.value.map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
      </label>
    </section>
  );
}
