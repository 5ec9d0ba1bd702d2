import { ApiError } from "./api.js";
import { type Child, fill, h } from "./dom.js";
import { shortId } from "./format.js";

/** What a view is given. */
export interface ViewParts {
  /** Where it is shown. */
  readonly root: HTMLElement;
  /** What the address says behind the view's name. */
  readonly rest: readonly string[];
  /** Parameters of the address. */
  readonly query: URLSearchParams;
  /** Aborts when another view is shown. */
  readonly signal: AbortSignal;
}

/** Shows a part of the page. What it rejects with is shown in its place. */
export type View = (parts: ViewParts) => Promise<void> | void;

/** The address of a view. */
export function linkTo(
  path: readonly string[],
  query: Readonly<Record<string, string | null | undefined>> = {},
): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]));
  const parameters = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `#/${path.map(encodeURIComponent).join("/")}${parameters}`;
}

/** Reads an address; what has escapes that are not UTF-8 is taken literally. */
export function readAddress(hash: string): { readonly path: readonly string[]; readonly query: URLSearchParams } {
  const [, path = "", query = ""] = /^#?\/?([^?]*)\??(.*)$/.exec(hash) ?? [];
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What names a user, or a conversation of theirs. */
interface Named {
  readonly user_id: string;
  readonly agent_id: string | null;
}

/** A link to a user's view. @param most characters of the id that are shown */
export function userLink({ user_id, agent_id }: Named, most?: number): HTMLElement {
  return h("a.id", { href: linkTo(["user"], { user_id, agent_id }), title: user_id }, shortId(user_id, most));
}

/** A link to a conversation's view. */
export function conversationLink({ user_id, agent_id }: Named, id: string, most?: number): HTMLElement {
  const href = linkTo(["conversation"], { user_id, agent_id, conversation_id: id });
  return h("a.id", { href, title: id }, shortId(id, most));
}

/** A titled part of a view. */
export function panel(title: string, note: string | null, ...children: readonly Child[]): HTMLElement {
  return h("section.panel", h("h2", title), note === null ? null : h("p.note", note), children);
}

/** What is shown where there is nothing yet. */
export function empty(title: string, ...children: readonly Child[]): HTMLElement {
  return h("div.empty", h("p.empty-title", title), children);
}

/** What went wrong, and what to do about it. */
export function failure(error: unknown): HTMLElement {
  const [title, detail] = wordsFor(error);
  return h("div.notice.bad", { role: "alert" }, h("strong", title), h("p", detail));
}

function wordsFor(error: unknown): readonly [string, string] {
  if (error instanceof ApiError && error.status === 401) {
    return ["An API key is needed", "This service has keys. Enter one that may read, with the button “Key” above."];
  }
  if (error instanceof ApiError && error.status === 501) return ["This is turned off", error.message];
  if (error instanceof ApiError) return [`The service answered ${error.status}`, error.message];
  if (error instanceof TypeError)
    return ["The service does not answer", "It may be restarting. The page tries again when you reload it."];
  return ["Something went wrong", error instanceof Error ? error.message : String(error)];
}

/** Shows what is on its way, then what came, or what went wrong. */
export async function showing(
  root: HTMLElement,
  signal: AbortSignal,
  load: () => Promise<readonly Child[]>,
): Promise<void> {
  root.setAttribute("aria-busy", "true");
  try {
    const children = await load();
    if (!signal.aborted) fill(root, ...children);
  } catch (error) {
    if (!signal.aborted) fill(root, failure(error));
  } finally {
    root.removeAttribute("aria-busy");
  }
}
