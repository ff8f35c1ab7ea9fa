// The latest clips; they stay in this browser until they are cleared.
import { Icon } from "../icons";
import { clearHistory, clips, replay, request, shownClip } from "../state";
import { formatSeconds } from "../time";
import { withoutMarks } from "../words";

export function History() {
  if (clips.value.length === 0) return null;
  return (
    <section class="history" aria-labelledby="history-title">
      <div class="row spread">
        <h2 id="history-title">History</h2>
        <button type="button" class="plain" onClick={() => void clearHistory()}>
          Clear
        </button>
      </div>
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
            <span class="spoken">{withoutMarks(clip.request.text)}</span>
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
