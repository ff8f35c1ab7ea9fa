// Numbers of the clip on screen, and where the time before its first audio went.
import { LabelledNumber } from "../number";
import { shownClip } from "../state";

const STEPS = {
  g2p: "text to phonemes",
  queue: "queue",
  acoustic: "acoustic",
  vocoder: "vocoder",
  encode: "encoding",
  other: "network and browser",
};

export function Numbers() {
  const clip = shownClip.value;
  if (!clip) return null;
  const first_ms = clip.first_ms.value;
  const steps = clip.steps.value;
  const known_ms = Object.values(steps).reduce((sum, ms) => sum + ms, 0);
  const parts = { ...steps, other: Math.max(0, (first_ms ?? 0) - known_ms) } as Record<string, number>;
  const total_ms = Math.max(1, known_ms + parts.other!);
  return (
    <section class="numbers" aria-label="Numbers of this speech">
      <dl>
        <LabelledNumber
          name="first audio"
          value={first_ms === null ? "…" : `${Math.round(first_ms)}`}
          unit="ms"
          id="first-audio"
        />
        <LabelledNumber name="times real time" value={clip.timesRealTime.value?.toFixed(1) ?? "…"} unit="×" id="times-real-time" />
        <LabelledNumber name="rows in the first batch" value={String(clip.batch.value ?? "…")} id="batch" />
        <LabelledNumber name="length" value={clip.duration_s.value.toFixed(1)} unit="s" id="duration" />
      </dl>
      {first_ms === null ? null : (
        <figure class="timing">
          <figcaption>Time to first audio</figcaption>
          <div class="bar" aria-hidden="true">
            {Object.keys(STEPS).map((step) => (
              <span key={step} data-step={step} style={{ flexGrow: (parts[step] ?? 0) / total_ms }} />
            ))}
          </div>
          <ul class="legend">
            {Object.entries(STEPS).map(([step, name]) => (
              <li key={step} data-step={step}>
                {name} <b>{(parts[step] ?? 0).toFixed((parts[step] ?? 0) < 10 ? 1 : 0)}</b> ms
              </li>
            ))}
          </ul>
        </figure>
      )}
    </section>
  );
}
