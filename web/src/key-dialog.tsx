// The dialog for the API key, which is stored in this browser and never part of a link.
import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { key, keyDialogOpen, saveKey } from "./server";

export function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  useSignalEffect(() => {
    if (keyDialogOpen.value && !dialog.current?.open) dialog.current?.showModal();
    if (!keyDialogOpen.value) dialog.current?.close();
  });
  return (
    <dialog ref={dialog} aria-labelledby="key-title" onClose={() => (keyDialogOpen.value = false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          saveKey(field.current!.value);
        }}
      >
        <h2 id="key-title">API key</h2>
        <p>
          Needed if this server requires a key. It is stored in this browser and sent only to this server.
        </p>
        <label for="key">Key</label>
        <input id="key" ref={field} type="password" autocomplete="off" defaultValue={key.value} />
        <div class="row end">
          <button type="button" class="plain" onClick={() => (keyDialogOpen.value = false)}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Save
          </button>
        </div>
      </form>
    </dialog>
  );
}
