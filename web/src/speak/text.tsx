// The text, with an estimate that follows the typing.
import { useComputed } from "@preact/signals";
import { useRef } from "preact/hooks";
import { SUFFIXES } from "../books/upload";
import { estimate } from "../estimate";
import { Icon } from "../icons";
import { DEFAULT_REQUEST } from "../request";
import { busy, clips, request, speak, stop, updateRequest } from "../state";
import { formatSeconds } from "../time";
import { DIALOGUE } from "./cast";
import { Marks } from "./marks";

const EXAMPLES = {
  Sentence: { text: DEFAULT_REQUEST.text },
  Numbers: {
    text: "On Jan 5th at 3:30 pm, Dr. Smith paid $5.20 for 3 lbs of apples, 10-15 % less than in v2.0.1 of the plan.",
  },
  Dialogue: DIALOGUE,
  Paragraph: {
    text: "The orchestra tunes to a single note. One oboe holds it, alone, and for a moment nobody else makes a sound. Then the strings take it up, desk by desk, and the brass, and the drums, until the hall is full. Nobody waited for the last player to find a chair. The conductor waits until the last of them has found it. Then the hall falls silent, and the evening begins.",
  },
};

export function Text() {
  const expected = useComputed(() => estimate(request.value));
  const factor = useComputed(() =>
    clips.value.map((clip) => (clip.state.value === "whole" ? clip.timesRealTime.value : null)).find(Boolean),
  );
  const { characters, words, speech_s } = expected.value;
  const area = useRef<HTMLTextAreaElement>(null);
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) speak();
  };
  return (
    <section class="text" aria-labelledby="text-title">
      <div class="row spread">
        <h2 id="text-title">
          <label for="text">Text</label>
        </h2>
        <ul class="chips" aria-label="Examples">
          {Object.entries(EXAMPLES).map(([name, example]) => (
            <li key={name}>
              <button type="button" class="chip" onClick={() => updateRequest({ cast: [], ...example })}>
                {name}
              </button>
            </li>
          ))}
        </ul>
      </div>
      <textarea
        id="text"
        ref={area}
        rows={4}
        spellcheck={false}
        aria-describedby="estimate"
        value={request.value.text}
        onInput={(event) => updateRequest({ text: event.currentTarget.value })}
        onKeyDown={onKey}
      />
      <Marks area={area} />
      <p class="hint">
        A whole book? Drop a file ({SUFFIXES.join(" ")}) on this page, or open <a href="#books">Audiobooks</a>.
      </p>
      <div class="row spread">
        <p id="estimate" class="faint">
          {words} {words === 1 ? "word" : "words"}, {characters.toLocaleString("en")} characters, about{" "}
          <b>{formatSeconds(speech_s)}</b> of speech
          {factor.value && words > 0 ? <>, which takes this server about {formatSeconds(speech_s / factor.value)}</> : null}
        </p>
        {busy.value ? (
          <button key="stop" type="button" class="primary large" onClick={stop}>
            <Icon name="stop" /> Stop
          </button>
        ) : (
          <button
            key="speak"
            type="button"
            class="primary large"
            disabled={!request.value.text.trim()}
            onClick={speak}
            title="Ctrl + Enter"
          >
            <Icon name="play" /> Speak
          </button>
        )}
      </div>
    </section>
  );
}
