// The player's controls, below all views.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Icon } from "./icons";
import { player } from "./player";
import { Seek } from "./seek";
import { loading } from "./server";
import { displayName, stop } from "./state";
import { formatSeconds } from "./time";
import { wordAt } from "./words";

export function PlayerBar() {
  const clip = player.clip.value;
  const word = useComputed(() => {
    const words = player.playing.value ? (player.clip.value?.words.value ?? []) : [];
    return words[wordAt(words, player.at_s.value)]?.word ?? "";
  });
  if (!clip) return null;
  const report = player.report.value;
  const playing = player.playing.value;
  const waiting = player.waiting.value;
  return (
    <aside
      class="player"
      aria-label="Player"
      data-command={player.command.value}
      data-played={report?.played}
      data-digest={report?.digest}
      data-gaps={report?.gaps}
      data-playing={playing}
      data-waiting={waiting}
      data-state={clip.state.value}
    >
      <button
        type="button"
        class="icon primary"
        aria-label={playing ? "Pause" : "Play"}
        disabled={waiting}
        onClick={() => player.play(!playing)}
      >
        <Icon name={waiting ? "wait" : playing ? "pause" : "play"} />
      </button>
      <button type="button" class="icon" aria-label="Stop" onClick={stop}>
        <Icon name="stop" />
      </button>
      <span class="title">{displayName(clip.title)}</span>
      {waiting ? (
        <Waiting />
      ) : (
        <i class="word" aria-hidden="true">
          {word.value}
        </i>
      )}
      <Seek clip={clip} label="Position in the player, in seconds" />
      <span class="time">
        {formatSeconds(player.at_s.value)} <span class="faint">of {formatSeconds(clip.duration_s.value)}</span>
      </span>
    </aside>
  );
}

/** Says that sound is being made, and for how long already. */
function Waiting() {
  const seconds = useSignal(0);
  useEffect(() => {
    const started = performance.now();
    const timer = setInterval(() => (seconds.value = (performance.now() - started) / 1000), 100);
    return () => clearInterval(timer);
  }, []);
  return (
    <span class="waiting" role="status">
      {loading.value ? "The server is loading its model…" : "Waiting for sound…"} <span aria-hidden="true">{formatSeconds(seconds.value)}</span>
    </span>
  );
}
