// What was said since the page was opened. It stays in this tab alone.
import { again, ask, past, shown } from "../desk";
import { Icon } from "../icons";
import { seconds } from "../estimate";

export function History() {
  if (past.value.length < 2) return null;
  return (
    <section class="history" aria-labelledby="history-title">
      <h2 id="history-title">Earlier</h2>
      <ol>
        {past.value.map((clip) => (
          <li key={clip.id} data-shown={clip === shown.value}>
            <button
              type="button"
              class="icon small"
              aria-label={`Play again: ${clip.ask.text.slice(0, 60)}`}
              onClick={() => again(clip)}
            >
              <Icon name="play" />
            </button>
            <span class="said">{clip.ask.text}</span>
            <span class="faint">
              <code>{clip.title}</code>{" "}
              {clip.state.value === "whole" ? seconds(clip.duration_s.value) : clip.state.value}
            </span>
            <button
              type="button"
              class="plain"
              onClick={() => (ask.value = clip.ask)}
              aria-label={`Edit: ${clip.ask.text.slice(0, 60)}`}
            >
              Edit
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
