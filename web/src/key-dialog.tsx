// The dialog for the API key, which is stored in this browser and never part of a link.
import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { closeKeyDialog, key, keyDialog, saveKey } from "./server";

const REASONS = {
  closed: "",
  open: "",
  needed: "This server needs a key. What you asked for goes on as soon as you save one.",
  refused: "The server did not accept this key. Check it, or ask whoever runs the server.",
};

export function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  useSignalEffect(() => {
    if (keyDialog.value !== "closed" && !dialog.current?.open) dialog.current?.showModal();
    if (keyDialog.value === "closed") dialog.current?.close();
  });
  // Not on close, which is told late: by then the key may have been refused, and the dialog is needed again.
  return (
    <dialog ref={dialog} aria-labelledby="key-title" onCancel={() => closeKeyDialog()}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          saveKey(field.current!.value);
        }}
      >
        <h2 id="key-title">API key</h2>
        {REASONS[keyDialog.value] ? <p class="error">{REASONS[keyDialog.value]}</p> : null}
        <p>It is stored in this browser and sent only to this server.</p>
        <label for="key">Key</label>
        <input id="key" ref={field} type="password" autocomplete="off" defaultValue={key.value} />
        <div class="row end">
          <button type="button" class="plain" onClick={() => closeKeyDialog()}>
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
