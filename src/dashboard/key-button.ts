import { fill, h } from "./dom.js";
import { keepKey, readKey } from "./key.js";

/** A button that opens a form for the API key. @param changed called when another key is to be used, or none */
export function keyButton(changed: () => void): HTMLElement {
  const input = h("input", {
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    id: "key",
    placeholder: "mst_…",
  });
  const dialog = h("dialog", { "aria-labelledby": "key-title" });
  const button = h("button.quiet", { type: "button", "aria-haspopup": "dialog" });
  const show = () => fill(button, readKey() === null ? "Key" : "Key ✓");
  const use = (key: string | null) => {
    keepKey(key);
    input.value = "";
    dialog.close();
    show();
    changed();
  };
  const form = h(
    "form",
    {
      method: "dialog",
      on: {
        submit: (event) => {
          event.preventDefault();
          const given = input.value.trim();
          use(given === "" ? null : given);
        },
      },
    },
    h("h2", { id: "key-title" }, "API key"),
    h(
      "p.note",
      "Only where the service has keys. It is kept in this tab until you close it, and sent to this service alone.",
    ),
    h("label", { for: "key" }, "Key"),
    input,
    h(
      "div.row",
      h("button.strong", { type: "submit" }, "Use it"),
      h("button", { type: "button", on: { click: () => use(null) } }, "Forget it"),
      h("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"),
    ),
  );
  fill(dialog, form);
  button.addEventListener("click", () => dialog.showModal());
  show();
  const box = h("div", button, dialog);
  return box;
}
