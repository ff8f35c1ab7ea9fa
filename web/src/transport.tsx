// The player's own strip, beneath both views.
import { useComputed } from "@preact/signals";
import { seconds } from "./estimate";
import { Icon } from "./icons";
import { player } from "./player";
import { stop } from "./desk";
import { wordAt } from "./words";

export function Transport() {
  const clip = player.clip.value;
  const word = useComputed(() => {
    const words = player.clip.value?.words.value ?? [];
    return words[wordAt(words, player.at_s.value)]?.word ?? "";
  });
  if (!clip) return null;
  const heard = player.heard.value;
  const playing = player.playing.value;
  return (
    <aside
      class="transport"
      aria-label="Player"
      data-turn={player.turn.value}
      data-heard={heard?.heard}
      data-digest={heard?.digest}
      data-gaps={heard?.gaps}
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
      <span class="what">{clip.title}</span>
      <i class="word" aria-hidden="true">
        {word.value}
      </i>
      <span class="time">
        {seconds(player.at_s.value)} <span class="faint">of {seconds(clip.duration_s.value)}</span>
      </span>
    </aside>
  );
}
