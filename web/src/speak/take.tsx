// To take away: the sound in any format, captions, code for this very request, a link that restores it.
import { signal } from "@preact/signals";
import { body, FORMATS, link } from "../ask";
import { captions } from "../captions";
import { ask, shown, trouble } from "../desk";
import { Icon } from "../icons";
import { key, post, worded } from "../server";
import { snippets } from "../snippets";

const format = signal("mp3");
const language = signal("curl");
const told = signal("");
const saving = signal(false);

export function Take() {
  const code = snippets(ask.value, format.value, location.origin, key.value !== "");
  const shownCode = code.find(({ name }) => name === language.value)!;
  const words = shown.value?.words.value.length ?? 0;
  return (
    <section class="take" aria-labelledby="take-title">
      <div class="row spread">
        <h2 id="take-title">Take it along</h2>
        <span class="faint" role="status">
          {told.value}
        </span>
      </div>
      <div class="row">
        <label class="inline">
          <span class="hidden">Format</span>
          <select id="format" value={format.value} onChange={(event) => (format.value = event.currentTarget.value)}>
            {FORMATS.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <button
          type="button"
          class="plain framed"
          id="download"
          disabled={saving.value || !ask.value.text.trim()}
          onClick={() => void download()}
        >
          <Icon name="save" /> Sound
        </button>
        {["srt", "vtt", "json"].map((kind) => (
          <button
            key={kind}
            type="button"
            class="plain framed"
            disabled={!words}
            aria-label={`Captions as ${kind}`}
            onClick={() => caption(kind)}
          >
            .{kind}
          </button>
        ))}
        <button type="button" class="plain framed" id="link" onClick={() => void share()}>
          <Icon name="copy" /> Link
        </button>
      </div>
      <div class="code">
        <div class="tabs" role="group" aria-label="Code for this request">
          {code.map(({ name }) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === language.value}
              onClick={() => (language.value = name)}
            >
              {name}
            </button>
          ))}
          <button
            type="button"
            class="icon small"
            aria-label="Copy the code"
            title="Copy"
            onClick={() => void copy(shownCode.code, "The code is copied.")}
          >
            <Icon name="copy" />
          </button>
        </div>
        <pre tabIndex={0} aria-label={`Code: ${shownCode.name}`}>
          <code id="code">{shownCode.code}</code>
        </pre>
      </div>
    </section>
  );
}

/** The whole sound with its true length, as the server encodes it. */
async function download(): Promise<void> {
  saving.value = true;
  told.value = "It is being made.";
  try {
    const reply = await post("/v1/audio/speech", { ...body(ask.value), response_format: format.value, stream: false });
    save(await reply.blob(), `speech.${format.value}`);
    told.value = "";
  } catch (error) {
    trouble.value = worded(error);
    told.value = "";
  }
  saving.value = false;
}

function caption(kind: string): void {
  const clip = shown.value!;
  save(new Blob([captions(kind, clip.ask.text, clip.words.value)], { type: "text/plain" }), `speech.${kind}`);
}

function save(blob: Blob, name: string): void {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}

async function share(): Promise<void> {
  history.replaceState(null, "", link(ask.value));
  await copy(location.href, "The link is copied.");
}

/** Browsers let pages copy only over TLS or on this machine; elsewhere the address bar has to do. */
async function copy(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    told.value = done;
  } catch {
    told.value = text === location.href ? "The link is in the address bar." : "Mark the text to copy it.";
  }
}
