// The dialog for a voice file: its name, its language, and who may use it.
import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { ProblemBox } from "../problem-box";
import { key } from "../server";
import { voices } from "../state";
import { saysLanguage, sendVoice, suggestedName, voiceFile, voiceProblem } from "./own-voices";
import { languageName } from "./voices";

export function VoiceDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const name = useSignal("");
  const language = useSignal("en-us");
  const access = useSignal("private");
  const sending = useSignal(false);
  useSignalEffect(() => {
    const file = voiceFile.value;
    if (file && !dialog.current?.open) {
      name.value = suggestedName(file);
      voiceProblem.value = null;
      dialog.current?.showModal();
    }
    if (!file) dialog.current?.close();
  });
  const languages = new Map(voices.value.map((voice) => [voice.language, languageName(voice)]));
  return (
    <dialog ref={dialog} aria-labelledby="voice-title" onCancel={() => (voiceFile.value = null)}>
      <form
        onSubmit={async (event) => {
          event.preventDefault();
          sending.value = true;
          await sendVoice(voiceFile.value!, name.value, language.value, key.value ? access.value : "");
          sending.value = false;
        }}
      >
        <h2 id="voice-title">A voice of your own</h2>
        <p>
          <b>{voiceFile.value?.name}</b>, a voice file of Kokoro. Recordings cannot be made into voices here.
        </p>
        <ProblemBox problem={voiceProblem.value} />
        <label for="voice-name">Name</label>
        <input
          type="text"
          id="voice-name"
          required
          maxLength={40}
          pattern="[a-z][a-z0-9_]*"
          title="lower-case letters, digits and _, the first a letter"
          value={name.value}
          onInput={(event) => (name.value = event.currentTarget.value)}
        />
        {saysLanguage(name.value) ? null : (
          <label class="field">
            <span>Speaks</span>
            <select id="voice-language" value={language.value} onChange={(event) => (language.value = event.currentTarget.value)}>
              {[...languages].map(([code, title]) => (
                <option key={code} value={code}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        )}
        {key.value ? (
          <label class="field">
            <span>For</span>
            <select id="voice-access" value={access.value} onChange={(event) => (access.value = event.currentTarget.value)}>
              <option value="private">your key only</option>
              <option value="shared">everybody on this server</option>
            </select>
          </label>
        ) : null}
        <div class="row end">
          <button type="button" class="plain" onClick={() => (voiceFile.value = null)}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={sending.value}>
            {sending.value ? "Adding…" : "Add and listen"}
          </button>
        </div>
      </form>
    </dialog>
  );
}
