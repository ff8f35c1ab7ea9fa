// Sliders for speed, pitch, pitch range and energy, and the emotions.
import { DEFAULT_REQUEST, EMOTIONS, PROSODY, PROSODY_NAMES, type ProsodyName } from "../request";
import { Slider } from "../slider";
import { request, updateRequest } from "../state";

const LABELS: Record<ProsodyName, { name: string; format: (value: number) => string }> = {
  speed: { name: "Speed", format: (value) => `${value.toFixed(2)}×` },
  pitch: { name: "Pitch", format: (value) => `${signed(value)} st` },
  pitch_range: { name: "Pitch range", format: (value) => `${value.toFixed(2)}×` },
  energy: { name: "Energy", format: (value) => `${signed(value)} dB` },
};

export function Prosody() {
  const { emotion } = request.value;
  const unchanged =
    emotion === "neutral" && PROSODY_NAMES.every((name) => request.value[name] === PROSODY[name].default);
  return (
    <section class="prosody" aria-labelledby="prosody-title">
      <div class="row spread">
        <h2 id="prosody-title">Expression</h2>
        <button type="button" class="plain" disabled={unchanged} onClick={reset}>
          Reset
        </button>
      </div>
      <div class="sliders">
        {PROSODY_NAMES.map((name) => (
          <div class="slider" key={name}>
            <label for={name}>{LABELS[name].name}</label>
            <Slider
              id={name}
              min={PROSODY[name].low}
              max={PROSODY[name].high}
              step={PROSODY[name].step}
              value={request.value[name]}
              neutral={PROSODY[name].default}
              valueText={LABELS[name].format(request.value[name])}
              onInput={(value) => updateRequest({ [name]: value })}
            />
            <output for={name}>{LABELS[name].format(request.value[name])}</output>
          </div>
        ))}
      </div>
      <fieldset class="emotions">
        <legend>Emotion</legend>
        {EMOTIONS.map((name) => (
          <label key={name} class="chip">
            <input
              type="radio"
              name="emotion"
              value={name}
              checked={emotion === name}
              onChange={() => updateRequest({ emotion: name })}
            />
            <span>{name}</span>
          </label>
        ))}
      </fieldset>
    </section>
  );
}

function reset(): void {
  const { text, voice, style, cast } = request.value;
  updateRequest({ ...DEFAULT_REQUEST, text, voice, style, cast });
}

function signed(value: number): string {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value)}`;
}
