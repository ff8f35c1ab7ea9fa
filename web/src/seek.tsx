// Where a clip is played, as a slider.
import type { Clip } from "./clip";
import { estimate } from "./estimate";
import { player } from "./player";

/** Seconds that the width of the waveform stands for. */
export function span_s(clip: Clip): number {
  return Math.max(clip.duration_s.value, clip.pending.value ? 1.1 * estimate(clip.request).speech_s : 0, 0.5);
}

/** Where a clip is being played; 0 for one that is not in the player. */
export function at_s(clip: Clip): number {
  return player.clip.value === clip ? player.at_s.value : 0;
}

export function Seek({ clip, label }: { clip: Clip; label: string }) {
  const seek = (event: { currentTarget: HTMLInputElement }) => {
    const s = event.currentTarget.valueAsNumber;
    if (player.clip.value === clip) player.seek(Math.min(s, clip.duration_s.value));
    else player.open(clip, s);
  };
  return (
    <input
      class="seek"
      type="range"
      aria-label={label}
      min={0}
      max={span_s(clip).toFixed(2)}
      step={0.01}
      value={at_s(clip).toFixed(2)}
      aria-valuetext={`${at_s(clip).toFixed(1)} seconds`}
      onInput={seek}
    />
  );
}
