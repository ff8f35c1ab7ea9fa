// The clips since the page was opened; they stay in this tab.
import { formatSeconds } from "../estimate";
import { Icon } from "../icons";
import { clips, replay, request, shownClip } from "../state";

export function History() {
  if (clips.value.length < 2) return null;
  return (
    <section class="history" aria-labelledby="history-title">
      <h2 id="history-title">History</h2>
      <ol>
        {clips.value.map((clip) => (
          <li key={clip.id} data-shown={clip === shownClip.value}>
            <button
              type="button"
              class="icon small"
              aria-label={`Play again: ${clip.request.text.slice(0, 60)}`}
              onClick={() => replay(clip)}
            >
              <Icon name="play" />
            </button>
            <span class="spoken">{clip.request.text}</span>
            <span class="faint">
              <code>{clip.title}</code>{" "}
              {clip.state.value === "whole" ? formatSeconds(clip.duration_s.value) : clip.state.value}
            </span>
            <button
              type="button"
              class="plain"
              onClick={() => (request.value = clip.request)}
              aria-label={`Edit: ${clip.request.text.slice(0, 60)}`}
            >
              Edit
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
