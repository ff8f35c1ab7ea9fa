// Downloads of audio and captions, code for the current request, and a link that restores it.
import { signal } from "@preact/signals";
import { serverAddress } from "../address";
import { captions } from "../captions";
import { Icon } from "../icons";
import { FORMATS, requestBody, requestLink, requestPath } from "../request";
import { saveBlob } from "../save";
import { key, post } from "../server";
import { snippets } from "../snippets";
import { fail, request, shownClip } from "../state";

const format = signal("mp3");
const language = signal("curl");
const status = signal("");
const saving = signal(false);

export function Export() {
  const code = snippets(request.value, format.value, serverAddress(), key.value !== "");
  const shownCode = code.find(({ name }) => name === language.value) ?? code[0]!;
  const words = shownClip.value?.words.value.length ?? 0;
  return (
    <section class="export" aria-labelledby="export-title">
      <div class="row spread">
        <h2 id="export-title">Download</h2>
        <span class="faint" role="status">
          {status.value}
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
          disabled={saving.value || !request.value.text.trim()}
          onClick={() => void download()}
        >
          <Icon name="save" /> Audio
        </button>
        {["srt", "vtt", "json"].map((kind) => (
          <button
            key={kind}
            type="button"
            class="plain framed"
            disabled={!words}
            aria-label={`Captions as ${kind}`}
            onClick={() => downloadCaptions(kind)}
          >
            .{kind}
          </button>
        ))}
        <button type="button" class="plain framed" id="link" onClick={() => void copyLink()}>
          <Icon name="copy" /> Copy link
        </button>
      </div>
      <div class="code">
        <div class="tabs" role="group" aria-label="Code for this request">
          {code.map(({ name }) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === shownCode.name}
              onClick={() => (language.value = name)}
            >
              {name}
            </button>
          ))}
          <button
            type="button"
            class="icon small"
            aria-label="Copy code"
            title="Copy"
            onClick={() => void copy(shownCode.code, "Code copied.")}
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

/** Request the complete audio, with true lengths in its header, and save it. */
async function download(): Promise<void> {
  saving.value = true;
  status.value = "Preparing the file…";
  try {
    const body = { ...requestBody(request.value), response_format: format.value, stream: false };
    const response = await post(requestPath(request.value), body);
    saveBlob(await response.blob(), `speech.${format.value}`);
  } catch (error) {
    fail(error, () => void download());
  }
  status.value = "";
  saving.value = false;
}

function downloadCaptions(kind: string): void {
  const clip = shownClip.value!;
  saveBlob(new Blob([captions(kind, clip.request.text, clip.words.value)], { type: "text/plain" }), `speech.${kind}`);
}

async function copyLink(): Promise<void> {
  history.replaceState(null, "", requestLink(request.value));
  await copy(location.href, "Link copied.");
}

/** Copy to the clipboard; browsers allow it only over TLS and on localhost. */
async function copy(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    status.value = done;
  } catch {
    status.value = text === location.href ? "The link is in the address bar." : "Select the text to copy it.";
  }
}
