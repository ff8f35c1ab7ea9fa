// Where the server wants a key: entered once, kept in this browser, never part of a link.
import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { keepKey, key, keyWanted } from "./server";

export function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  useSignalEffect(() => {
    if (keyWanted.value && !dialog.current?.open) dialog.current?.showModal();
    if (!keyWanted.value) dialog.current?.close();
  });
  return (
    <dialog ref={dialog} aria-labelledby="key-title" onClose={() => (keyWanted.value = false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keepKey(field.current!.value);
        }}
      >
        <h2 id="key-title">API key</h2>
        <p>
          Where a server has keys, it speaks for those who hold one. Yours stays in this browser and is sent to this
          server alone.
        </p>
        <label for="key">Key</label>
        <input id="key" ref={field} type="password" autocomplete="off" defaultValue={key.value} />
        <div class="row end">
          <button type="button" class="plain" onClick={() => (keyWanted.value = false)}>
            Not now
          </button>
          <button type="submit" class="primary">
            Keep it
          </button>
        </div>
      </form>
    </dialog>
  );
}
