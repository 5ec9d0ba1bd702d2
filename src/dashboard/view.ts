/*
 * dashboard: the page in the browser. Enters: JSON of the public HTTP API. Leaves: elements, which Preact makes of HTML in templates.
 * It calls the service through `client`, knows no other room, and `npm run build` bundles it into one script. All text becomes text nodes:
 * memory texts, ids and names are untrusted, and the page's policy forbids HTML from strings (`require-trusted-types-for`) and `style`
 * attributes: styles are set by property.
 */

import { html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { MemprefixError } from "../client/index.js";
import { shortId } from "./format.js";

export interface Loaded<T> {
  readonly data: T;
  /** Parameters of the address. */
  readonly query: URLSearchParams;
  /** Loads the data again; if that fails, the old data stays. */
  readonly reload: () => Promise<void>;
}

/** A part of the page. `isMoved`: its address replaced another one. */
export type View = (props: { readonly query: URLSearchParams; readonly isMoved: boolean }) => VNode;

/** A view of what `load` resolves to; an error is shown in its place. The signal aborts when another view is shown. */
export function loading<T>(
  load: (query: URLSearchParams, signal: AbortSignal) => Promise<T>,
  Contents: (props: Loaded<T>) => ComponentChildren,
): View {
  return ({ query, isMoved }) => {
    const main = useRef<HTMLElement>(null);
    const [shown, setShown] = useState<{ readonly data: T } | { readonly error: unknown } | null>(null);
    const ending = useMemo(() => new AbortController(), []);
    const reload = async () => {
      const data = await load(query, ending.signal).catch(() => null);
      if (data !== null && !ending.signal.aborted) setShown({ data });
    };
    useEffect(() => {
      const show = async () => {
        const next = await load(query, ending.signal).then(
          (data) => ({ data }),
          (error: unknown) => ({ error }),
        );
        if (ending.signal.aborted) return;
        setShown(next);
        if (!isMoved) return;
        // A screen reader continues where the new view begins.
        main.current?.focus({ preventScroll: true });
        scrollTo(0, 0);
      };
      void show();
      return () => ending.abort();
    }, []);
    return html`<main id="view" tabindex="-1" ref=${main} aria-busy=${shown === null || undefined}>
      ${shown !== null && "data" in shown && html`<${Contents} data=${shown.data} query=${query} reload=${reload} />`}
      ${shown !== null && "error" in shown && failure(shown.error)}
    </main>`;
  };
}

/** Reloads a view's data at this interval while the page is visible. Null: never. */
export function usePolling(everyMs: number | null, reload: () => Promise<void>): void {
  useEffect(() => {
    if (everyMs === null) return;
    const timer = setInterval(() => {
      // A reload would replace the chart under the pointer.
      if (!document.hidden && document.querySelector(".plot:hover") === null) void reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}

/** The address of a view. */
export function linkTo(path: string, query: Readonly<Record<string, string | null | undefined>> = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]));
  return `#/${path}${given.length === 0 ? "" : `?${new URLSearchParams(given)}`}`;
}

interface Named {
  readonly userId: string;
  readonly agentId: string | null;
}

/** A link to a user's requests. @param most characters of the id that are shown */
export function userLink({ userId, agentId }: Named, most?: number): VNode {
  return html`<a class="id" href=${linkTo("requests", { user_id: userId, agent_id: agentId })} title=${userId}>${shortId(userId, most)}</a>`;
}

export function conversationLink({ userId, agentId }: Named, id: string, most?: number): VNode {
  const href = linkTo("requests", { user_id: userId, agent_id: agentId, conversation_id: id });
  return html`<a class="id" href=${href} title=${id}>${shortId(id, most)}</a>`;
}

export function panel(title: string, note: string | null, ...children: readonly ComponentChildren[]): VNode {
  return html`<section class="panel"><h2>${title}</h2>${note !== null && html`<p class="note">${note}</p>`}${children}</section>`;
}

/** Content that scrolls where it is too large, also by keyboard. */
export function scrolling(label: string, children: ComponentChildren, kind = "scroll"): VNode {
  return html`<div class=${kind} tabindex="0" role="region" aria-label=${label}>${children}</div>`;
}

/** A view's placeholder without data. */
export function empty(title: string, children?: ComponentChildren): VNode {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

/** A message that needs the reader's attention. */
export function alarm(title: string, detail: ComponentChildren): VNode {
  return html`<div class="notice bad" role="alert"><strong>${title}</strong><p>${detail}</p></div>`;
}

/** An error, with its remedy. */
export function failure(error: unknown): VNode {
  return alarm(...wordsFor(error));
}

function wordsFor(error: unknown): readonly [string, string] {
  if (!(error instanceof MemprefixError)) {
    return ["Something went wrong", error instanceof Error ? error.message : String(error)];
  }
  const { status, problem, message } = error;
  if (status === 401) {
    return ["An API key is needed", "This service has keys. Enter one that may read, with the button “Key” above."];
  }
  if (status === null) {
    return ["The service does not answer", "It may be restarting. The page tries again when you reload it."];
  }
  const fields = problem?.errors?.map((issue) => `${issue.field} ${issue.message}`).join("; ");
  const words = problem?.detail ?? problem?.title ?? message;
  return [`The service answered ${status}`, fields ? `${words}: ${fields}` : words];
}

export interface Column<T> {
  readonly title: string;
  readonly isNumber?: boolean;
  /** Whether it names the row. */
  readonly isName?: boolean;
  readonly cell: (row: T) => ComponentChildren;
}

interface TableProps<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Identifies a row when rows change; absent: its position. */
  readonly keyOf?: (row: T) => number;
}

/** A table that scrolls sideways where it is too wide. */
export function figuresTable<T>({ caption, columns, rows, keyOf }: TableProps<T>): VNode {
  const head = columns.map(({ title, isNumber }) => html`<th class=${isNumber && "number"} scope="col">${title}</th>`);
  const cells = (row: T) =>
    columns.map(({ isNumber, isName, cell }) =>
      isName
        ? html`<th class=${isNumber && "number"} scope="row">${cell(row)}</th>`
        : html`<td class=${isNumber && "number"}>${cell(row)}</td>`,
    );
  const body = rows.map((row, at) => html`<tr key=${keyOf?.(row) ?? at}>${cells(row)}</tr>`);
  return scrolling(
    caption,
    html`<table><caption class="unseen">${caption}</caption><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`,
  );
}
