// Numbers of the clip on screen, and where the time before its first audio went.
import type { Clip } from "../clip";
import { LabelledNumber } from "../number";
import { player } from "../player";
import { shownClip } from "../state";
import { formatMs, formatSeconds } from "../time";

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
  if (!clip?.count.value) return null;
  const first_ms = clip.first_ms.value;
  const steps = clip.steps.value;
  const known_ms = Object.values(steps).reduce((sum, ms) => sum + ms, 0);
  const parts = { ...steps, other: Math.max(0, (first_ms ?? 0) - known_ms) } as Record<string, number>;
  const total_ms = Math.max(1, known_ms + parts.other!);
  return (
    <section class="numbers" aria-label="Numbers of this speech">
      <dl>
        <LabelledNumber name="until the first sound" value={first_ms === null ? "…" : formatMs(first_ms)} id="first-audio" />
        <LabelledNumber
          name="of playback speed"
          value={clip.timesRealTime.value?.toFixed(1) ?? "…"}
          unit="×"
          id="times-real-time"
        />
        <LabelledNumber name="length" value={formatSeconds(clip.duration_s.value)} id="duration" />
        <LabelledNumber name="gaps while playing" value={gap(clip)} id="gaps" />
      </dl>
      <Notices clip={clip} />
      {first_ms === null ? null : (
        <figure class="timing">
          <figcaption>
            Where the time until the first sound went. Requests in its pass through the model:{" "}
            <b id="batch">{clip.batch.value ?? "…"}</b>
          </figcaption>
          <div class="bar" aria-hidden="true">
            {Object.keys(STEPS).map((step) => (
              <span key={step} data-step={step} style={{ flexGrow: (parts[step] ?? 0) / total_ms }} />
            ))}
          </div>
          <ul class="legend">
            {Object.entries(STEPS).map(([step, name]) => (
              <li key={step} data-step={step}>
                {name} <b>{formatMs(parts[step] ?? 0)}</b>
              </li>
            ))}
          </ul>
        </figure>
      )}
    </section>
  );
}

/** What the server did not speak as it is written. */
function Notices({ clip }: { clip: Clip }) {
  const { symbols, count } = clip.unspoken.value;
  if (!symbols.length && !clip.notices.value.length) return null;
  const shown = symbols.slice(0, MAX_SYMBOLS).join(" ") + (symbols.length > MAX_SYMBOLS ? " …" : "");
  return (
    <ul class="notices">
      {symbols.length ? (
        <li>
          Not spoken, because this voice has no sound for it: <b>{shown}</b> ({count} {count === 1 ? "symbol" : "symbols"})
        </li>
      ) : null}
      {clip.notices.value.map((notice) => (
        <li key={notice}>{notice}</li>
      ))}
    </ul>
  );
}

const MAX_SYMBOLS = 20;

/** Silence in mid-speech, because the next sound was not there in time. */
function gap(clip: Clip): string {
  if (player.clip.value !== clip) return "–";
  return player.gap_s.value < 0.02 ? "none" : formatSeconds(player.gap_s.value);
}
