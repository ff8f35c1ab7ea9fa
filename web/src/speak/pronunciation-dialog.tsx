// The dialog for one word: hear how it may be said, and keep one of these, or a spelling of one's own.
import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Icon } from "../icons";
import { ProblemBox } from "../problem-box";
import { key } from "../server";
import { editedWord, entryOf, findReadings, hearWord, keepWord, readings, wordProblem, words } from "./pronunciations";

export function PronunciationDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const own = useSignal("");
  useSignalEffect(() => {
    const word = editedWord.value;
    if (word !== null && !dialog.current?.open) {
      own.value = words.peek()[entryOf(word)] ?? "";
      dialog.current?.showModal();
    }
    if (word === null) dialog.current?.close();
  });
  const word = editedWord.value ?? "";
  const close = () => (editedWord.value = null);
  const keep = (said: string) => {
    keepWord(word, said);
    close();
  };
  return (
    <dialog ref={dialog} class="pronunciation" aria-labelledby="pronunciation-title" onCancel={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keep(own.value.trim());
        }}
      >
        <h2 id="pronunciation-title">Pronounce a word</h2>
        <ProblemBox problem={wordProblem.value} />
        <label for="word">Word</label>
        <input
          type="text"
          id="word"
          required
          maxLength={60}
          value={word}
          onInput={(event) => (editedWord.value = event.currentTarget.value)}
          onChange={() => void findReadings(word)}
        />
        <ul class="readings" aria-label="It may be said">
          {readings.value.map(({ phonemes, source }) => {
            const said = `/${phonemes}/`;
            return (
              <li key={phonemes}>
                <button type="button" class="icon small" aria-label={`Hear ${said}`} onClick={() => void hearWord(word, said)}>
                  <Icon name="play" />
                </button>
                <span>
                  {said} <small>{source}</small>
                </span>
                <button type="button" class="plain framed" aria-label={`Keep ${said}`} onClick={() => keep(said)}>
                  Keep
                </button>
              </li>
            );
          })}
        </ul>
        <label for="said">Or write it as it sounds, or between slashes in IPA</label>
        <div class="row">
          <input
            type="text"
            id="said"
            required
            maxLength={200}
            placeholder="engine ex"
            value={own.value}
            onInput={(event) => (own.value = event.currentTarget.value)}
          />
          <button
            type="button"
            class="icon small"
            aria-label="Hear it"
            disabled={!own.value.trim() || !word.trim()}
            onClick={() => void hearWord(word, own.value.trim())}
          >
            <Icon name="play" />
          </button>
        </div>
        <p class="hint">Kept in this browser{key.value ? " and, for your key, on the server" : ""}, for every text.</p>
        <div class="row end">
          <button type="button" class="plain" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Keep
          </button>
        </div>
      </form>
    </dialog>
  );
}
