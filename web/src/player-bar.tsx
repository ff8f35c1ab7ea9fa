// The player's controls, below both views.
import { useComputed } from "@preact/signals";
import { formatSeconds } from "./estimate";
import { Icon } from "./icons";
import { player } from "./player";
import { stop } from "./state";
import { wordAt } from "./words";

export function PlayerBar() {
  const clip = player.clip.value;
  const word = useComputed(() => {
    const words = player.clip.value?.words.value ?? [];
    return words[wordAt(words, player.at_s.value)]?.word ?? "";
  });
  if (!clip) return null;
  const report = player.report.value;
  const playing = player.playing.value;
  return (
    <aside
      class="player"
      aria-label="Player"
      data-command={player.command.value}
      data-played={report?.played}
      data-digest={report?.digest}
      data-gaps={report?.gaps}
      data-playing={playing}
      data-state={clip.state.value}
    >
      <button
        type="button"
        class="icon primary"
        aria-label={playing ? "Pause" : "Play"}
        onClick={() => player.play(!playing)}
      >
        <Icon name={playing ? "pause" : "play"} />
      </button>
      <button type="button" class="icon" aria-label="Stop" onClick={stop}>
        <Icon name="stop" />
      </button>
      <span class="title">{clip.title}</span>
      <i class="word" aria-hidden="true">
        {word.value}
      </i>
      <span class="time">
        {formatSeconds(player.at_s.value)} <span class="faint">of {formatSeconds(clip.duration_s.value)}</span>
      </span>
    </aside>
  );
}
