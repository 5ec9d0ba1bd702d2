import { html } from "htm/preact";
import { useRef, useState } from "preact/hooks";
import { keepKey, readKey } from "./service.js";

/** A button that opens a form for the API key. `onChange`: the key was changed or removed. */
export function KeyButton({ onChange }: { readonly onChange: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const close = () => dialog.current?.close();
  const use = (key: string | null) => {
    keepKey(key);
    setTyped("");
    close();
    onChange();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    use(typed.trim() || null);
  };
  const type = ({ currentTarget }: { currentTarget: HTMLInputElement }) => setTyped(currentTarget.value);
  return html`<div>
    <button type="button" class="quiet" aria-haspopup="dialog" onClick=${() => dialog.current?.showModal()}>
      ${readKey() === null ? "Key" : "Key ✓"}
    </button>
    <dialog ref=${dialog} aria-labelledby="key-title">
      <form method="dialog" onSubmit=${submit}>
        <h2 id="key-title">API key</h2>
        <p class="note">Only where the service has keys. It is kept in this tab until you close it, and sent to this service alone.</p>
        <label for="key">Key</label>
        <input type="password" autocomplete="off" spellcheck=${false} id="key" placeholder="mst_…" value=${typed} onInput=${type} />
        <div class="row">
          <button class="strong" type="submit">Use it</button>
          <button type="button" onClick=${() => use(null)}>Forget it</button>
          <button type="button" onClick=${close}>Cancel</button>
        </div>
      </form>
    </dialog>
  </div>`;
}
