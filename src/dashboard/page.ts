import { html } from "htm/preact";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { KeyButton } from "./key-button.js";
import { missesView } from "./misses-view.js";
import { nowView } from "./now-view.js";
import { requestView } from "./request-view.js";
import { requestsView } from "./requests-view.js";
import { tryView } from "./try-view.js";
import { linkTo, type View } from "./view.js";

/* The page's entry: its head, and the view that the address names. */

interface Listed {
  readonly name: string;
  readonly title: string;
  readonly View: View;
  /** The menu entry that leads to it; absent: its own. */
  readonly under?: string;
}

const NOW: Listed = { name: "", title: "Now", View: nowView };

/** The views by their name in the address, those of the menu in its order. */
const VIEWS: readonly Listed[] = [
  NOW,
  { name: "requests", title: "Requests", View: requestsView },
  { name: "misses", title: "Misses", View: missesView },
  { name: "try", title: "Try it", View: tryView },
  { name: "request", title: "Request", View: requestView, under: "requests" },
];

/** Skips the menu. The address names the view: the link's own target must not get into it. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("view")?.focus();
}

function Page() {
  const [{ hash, shown, isMoved }, setAddress] = useState({ hash: location.hash, shown: 0, isMoved: false });
  const [keys, setKeys] = useState(0);
  useEffect(() => {
    const move = () => setAddress(({ shown }) => ({ hash: location.hash, shown: shown + 1, isMoved: true }));
    addEventListener("hashchange", move);
    return () => removeEventListener("hashchange", move);
  }, []);
  const [, name = "", parameters = ""] = /^#?\/?([^/?]*)[^?]*\??(.*)$/.exec(hash) ?? [];
  const { View, title, under = name } = VIEWS.find((view) => view.name === name) ?? NOW;
  useEffect(() => {
    document.title = `${title} · memprefix`;
  }, [title]);
  const links = VIEWS.filter((view) => view.under === undefined).map((view) => {
    return html`<a href=${linkTo(view.name)} aria-current=${view.name === under ? "page" : undefined}>${view.title}</a>`;
  });
  return html`
    <a class="skip" href="#view" onClick=${skip}>Skip to the content</a>
    <header class="head">
      <a class="brand" href=${linkTo("")}>
        <img src="/dashboard/icon.svg" alt="" width="26" height="26" /><span>memprefix</span>
      </a>
      <nav aria-label="Views">${links}</nav>
      <div class="tools">
        <${KeyButton} onChange=${() => setKeys(keys + 1)} />
      </div>
    </header>
    <${View} key="${shown} ${keys}" query=${new URLSearchParams(parameters)} isMoved=${isMoved} />`;
}

document.body.replaceChildren();
render(html`<${Page} />`, document.body);
