import { conversationView } from "./conversation-view.js";
import { fill, h } from "./dom.js";
import { keyButton } from "./key-button.js";
import { follow } from "./live.js";
import { missesView } from "./misses-view.js";
import { nowView } from "./now-view.js";
import { requestView } from "./request-view.js";
import { requestsView } from "./requests-view.js";
import { nextTheme, readTheme, useTheme } from "./theme.js";
import { tryView } from "./try-view.js";
import { userView } from "./user-view.js";
import { usersView } from "./users-view.js";
import { failure, linkTo, readAddress, type View } from "./view.js";

/*
 * The page's entry: its head, and the view that the address names.
 */

/** The views, by the first part of their address. Those with a menu entry are in its order; others are reached from them. */
const VIEWS: readonly {
  readonly name: string;
  readonly title: string;
  readonly view: View;
  readonly under?: string;
}[] = [
  { name: "now", title: "Now", view: nowView },
  { name: "requests", title: "Requests", view: requestsView },
  { name: "misses", title: "Misses", view: missesView },
  { name: "users", title: "Users", view: usersView },
  { name: "try", title: "Try it", view: tryView },
  { name: "request", title: "Request", view: requestView, under: "requests" },
  { name: "user", title: "User", view: userView, under: "users" },
  { name: "conversation", title: "Conversation", view: conversationView, under: "users" },
];

const root = h("main", { id: "view", tabindex: -1 });
const light = h("span.light", { role: "status" });
const links = VIEWS.filter(({ under }) => under === undefined).map(({ name, title }) => ({
  name,
  link: h("a", { href: linkTo(name === VIEWS[0]?.name ? [] : [name]) }, title),
}));

function themeButton(): HTMLButtonElement {
  const button = h("button.quiet", { type: "button" });
  const show = () => {
    const theme = readTheme();
    fill(button, h("span", { "aria-hidden": true }, { auto: "◐", light: "☀", dark: "☾" }[theme]), ` ${theme}`);
    button.setAttribute("aria-label", `Colours: ${theme}. Change`);
  };
  button.addEventListener("click", () => {
    useTheme(nextTheme(readTheme()));
    show();
  });
  show();
  return button;
}

let shown = new AbortController();

async function show(): Promise<void> {
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  const { path, query } = readAddress(location.hash);
  const found = VIEWS.find(({ name }) => name === path[0]) ?? VIEWS[0];
  if (found === undefined) return;
  for (const { name, link } of links) {
    if (name === (found.under ?? found.name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${found.title} · memstem`;
  fill(root);
  try {
    await found.view({ root, rest: path.slice(1), query, signal });
  } catch (error) {
    if (!signal.aborted) fill(root, failure(error));
  }
}

function changeKey(): void {
  follow(light);
  void show();
}

function skipLink(): HTMLElement {
  const skip = h("a.skip", { href: "#view" }, "Skip to the content");
  // The address names the view: the link's own target must not get into it.
  skip.addEventListener("click", (event) => {
    event.preventDefault();
    root.focus();
  });
  return skip;
}

useTheme(readTheme());
document.body.replaceChildren(
  skipLink(),
  h(
    "header.head",
    h(
      "a.brand",
      { href: linkTo([]) },
      h("img", { src: "/dashboard/icon.svg", alt: "", width: 26, height: 26 }),
      h("span", "memstem"),
    ),
    h(
      "nav",
      { "aria-label": "Views" },
      links.map(({ link }) => link),
    ),
    h("div.tools", light, keyButton(changeKey), themeButton()),
  ),
  root,
);
addEventListener("hashchange", () => {
  void show().then(() => {
    root.focus({ preventScroll: true });
    scrollTo(0, 0);
  });
});
follow(light);
void show();
