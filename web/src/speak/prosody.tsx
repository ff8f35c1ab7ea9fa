// How it is said.
import { EMOTIONS, MANNER, MANNERS, type Manner, OPENING } from "../ask";
import { ask, change } from "../desk";

const WORDED: Record<Manner, { name: string; shown: (value: number) => string }> = {
  speed: { name: "Speed", shown: (value) => `${value.toFixed(2)}×` },
  pitch: { name: "Pitch", shown: (value) => `${signed(value)} st` },
  pitch_range: { name: "Melody", shown: (value) => `${value.toFixed(2)}×` },
  energy: { name: "Energy", shown: (value) => `${signed(value)} dB` },
};

export function Prosody() {
  const { emotion } = ask.value;
  const usual = emotion === "neutral" && MANNERS.every((name) => ask.value[name] === MANNER[name].usual);
  return (
    <section class="prosody" aria-labelledby="prosody-title">
      <div class="row spread">
        <h2 id="prosody-title">Expression</h2>
        <button
          type="button"
          class="plain"
          disabled={usual}
          onClick={() => change({ ...OPENING, text: ask.value.text, voice: ask.value.voice, style: ask.value.style })}
        >
          As usual
        </button>
      </div>
      <div class="sliders">
        {MANNERS.map((name) => (
          <div class="slider" key={name}>
            <label for={name}>{WORDED[name].name}</label>
            <input
              id={name}
              type="range"
              min={MANNER[name].low}
              max={MANNER[name].high}
              step={MANNER[name].step}
              value={ask.value[name]}
              aria-valuetext={WORDED[name].shown(ask.value[name])}
              onInput={(event) => change({ [name]: event.currentTarget.valueAsNumber })}
            />
            <output for={name}>{WORDED[name].shown(ask.value[name])}</output>
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
              onChange={() => change({ emotion: name })}
            />
            <span>{name}</span>
          </label>
        ))}
      </fieldset>
    </section>
  );
}

function signed(value: number): string {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value)}`;
}
