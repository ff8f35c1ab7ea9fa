// How the text is read: its language, blocks of code, and words that are said in another way.
import { useComputed } from "@preact/signals";
import { Icon } from "../icons";
import { CODE_BLOCKS } from "../request";
import { request, updateRequest, voices } from "../state";
import { editWord, keepWord, words } from "./pronunciations";
import { languageName } from "./voices";

export function Reading() {
  const languages = useComputed(() => new Map(voices.value.map((voice) => [voice.language, languageName(voice)])));
  const { language = "", code_blocks = "" } = request.value;
  return (
    <section class="reading" aria-labelledby="reading-title">
      <div class="row spread">
        <h2 id="reading-title">Reading</h2>
        <button type="button" class="plain framed" id="pronounce" onClick={() => void editWord(selectedWord())}>
          Pronounce a word…
        </button>
      </div>
      <div class="options">
        <label class="field">
          <span>Text is in</span>
          <select
            id="language"
            value={language}
            onChange={(event) => updateRequest({ language: event.currentTarget.value || undefined })}
          >
            <option value="">as the voice speaks</option>
            <option value="auto">auto: each sentence in its own</option>
            {[...languages.value].map(([code, title]) => (
              <option key={code} value={code}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Code blocks</span>
          <select
            id="code-blocks"
            value={code_blocks}
            onChange={(event) => updateRequest({ code_blocks: event.currentTarget.value || undefined })}
          >
            <option value="">as the server does</option>
            {Object.entries(CODE_BLOCKS).map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
      </div>
      {Object.keys(words.value).length ? (
        <ul class="chips words" aria-label="Pronunciations">
          {Object.entries(words.value).map(([word, said]) => (
            <li key={word} class="chip">
              <button type="button" title="Change" onClick={() => void editWord(word)}>
                {word}: {said}
              </button>
              <button type="button" class="icon small" aria-label={`Forget ${word}`} onClick={() => keepWord(word, null)}>
                <Icon name="cross" />
              </button>
            </li>
          ))}
        </ul>
      ) : (
        <p class="hint">Is a name said wrong? Select it in the text, press “Pronounce a word…” and choose.</p>
      )}
    </section>
  );
}

/** What is selected in the text, else the word at the caret. */
function selectedWord(): string {
  const field = document.querySelector<HTMLTextAreaElement>("#text");
  if (!field) return "";
  const { value, selectionStart: start, selectionEnd: end } = field;
  if (end > start) return value.slice(start, end).trim().slice(0, 60);
  const before = /[\p{L}\p{M}\p{N}'’-]*$/u.exec(value.slice(0, start))![0];
  const after = /^[\p{L}\p{M}\p{N}'’-]*/u.exec(value.slice(end))![0];
  return (before + after).slice(0, 60);
}
