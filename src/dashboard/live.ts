import type { WireLiveRows, WireRow } from "./api.js";
import { ApiError, openStream, type Query, withQuery } from "./api.js";

/*
 * One stream of events for the whole page: of what the view shows. Views that list no prompts get how many came, and no more.
 */

/** What comes over the stream. */
export type UsageEventView =
  | { readonly kind: "requests"; readonly rows: readonly WireRow[]; readonly more: number }
  | { readonly kind: "note" }
  /** Prompts may have come that were not reported: the stream begins, or was too slow. */
  | { readonly kind: "missed" };

const EVENTS = new EventTarget();
const COUNTS_ONLY: Query = { limit: 0 };
let following = new AbortController();
let followed = COUNTS_ONLY;
let showOpen: (isOpen: boolean) => void = () => {};
let isToBegin = false;

/** Follows the service's events, with the key of now: called again where another key is to be used. `onOpen`: whether they come. */
export function follow(onOpen: (isOpen: boolean) => void): void {
  showOpen = onOpen;
  showOpen(false);
  begin();
}

/** Follows prompts that fit a filter, rows and all, until the signal aborts: the service leaves out others before it bounds their number. */
export function followOnly(filter: Query, signal: AbortSignal): void {
  followed = filter;
  begin();
  signal.addEventListener("abort", () => {
    if (followed !== filter) return;
    followed = COUNTS_ONLY;
    begin();
  });
}

/** Calls back with every event until the signal aborts. */
export function onUsage(signal: AbortSignal, called: (event: UsageEventView) => void): void {
  EVENTS.addEventListener("usage", (event) => called((event as CustomEvent<UsageEventView>).detail), { signal });
}

/** Once for all changes of this moment: one view goes and another comes. */
function begin(): void {
  if (isToBegin) return;
  isToBegin = true;
  queueMicrotask(() => {
    isToBegin = false;
    following.abort();
    following = new AbortController();
    void readEvents(withQuery("/usage/events", followed), following.signal);
  });
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** Answers that the next try would get again: no valid key, no such filter, or no such events. */
const ENDS: ReadonlySet<number> = new Set([400, 401, 403, 404, 501]);

/**
 * Reads server-sent events until the signal aborts, and connects again where the stream ends. `EventSource` sends no headers, so no key; this
 * does. A key that is not valid ends it.
 */
async function readEvents(path: string, signal: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT_MS;
  let lastId = "";
  while (!signal.aborted) {
    try {
      const headers = { accept: "text/event-stream", ...(lastId === "" ? {} : { "last-event-id": lastId }) };
      const response = await openStream(path, headers, signal);
      showOpen(true);
      dispatch({ kind: "missed" });
      wait = FIRST_WAIT_MS;
      for await (const { id, type, data } of eventsOf(response)) {
        if (id !== null) lastId = id;
        if (type === "requests") dispatch({ kind: type, ...(JSON.parse(data) as WireLiveRows) });
        else if (type === "note") dispatch({ kind: type });
        else if (type === "dropped") dispatch({ kind: "missed" });
      }
    } catch (error) {
      if (error instanceof ApiError && ENDS.has(error.status)) return showOpen(false);
    }
    if (signal.aborted) return;
    showOpen(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(LONGEST_WAIT_MS, wait * 2);
  }
}

function dispatch(detail: UsageEventView): void {
  EVENTS.dispatchEvent(new CustomEvent("usage", { detail }));
}

/** The events of a stream, by the lines of the WHATWG's `text/event-stream`. Comments and `retry` are ignored. */
async function* eventsOf({ body }: Response) {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const parts = (rest + read.value).split(/\r?\n\r?\n/);
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const fields = part.split(/\r?\n/).map((line) => /^([^:]*):? ?(.*)$/.exec(line) ?? []);
      const all = (name: string) => fields.filter(([, field]) => field === name).map(([, , value = ""]) => value);
      const data = all("data");
      if (data.length > 0)
        yield { type: all("event").at(-1) ?? "message", data: data.join("\n"), id: all("id").at(-1) ?? null };
    }
  }
}
