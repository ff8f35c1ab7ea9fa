// How the last answer was made: the numbers, and where the time went before the first sound.
import { shown } from "../desk";
import { Figure } from "../figure";

const STEPS = {
  g2p: "reading",
  queue: "queue",
  acoustic: "acoustic",
  vocoder: "vocoder",
  encode: "encoding",
  way: "network and page",
};

export function Figures() {
  const clip = shown.value;
  if (!clip) return null;
  const first_ms = clip.first_ms.value;
  const told = clip.steps.value;
  const known_ms = Object.values(told).reduce((sum, ms) => sum + ms, 0);
  const parts = { ...told, way: Math.max(0, (first_ms ?? 0) - known_ms) } as Record<string, number>;
  const total_ms = Math.max(1, known_ms + parts.way!);
  return (
    <section class="figures" aria-label="How it was made">
      <dl>
        <Figure
          name="first audio"
          value={first_ms === null ? "…" : `${Math.round(first_ms)}`}
          unit="ms"
          id="first-audio"
        />
        <Figure name="times real time" value={clip.faster.value?.toFixed(1) ?? "…"} unit="×" id="faster" />
        <Figure name="rows in its first batch" value={String(clip.batch.value ?? "…")} id="batch" />
        <Figure name="of speech" value={clip.duration_s.value.toFixed(1)} unit="s" id="duration" />
      </dl>
      {first_ms === null ? null : (
        <figure class="timing">
          <figcaption>Until the first sound</figcaption>
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
