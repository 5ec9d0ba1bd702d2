import { type Query, withQuery } from "./api.js";
import { h } from "./dom.js";
import { readEvents } from "./events.js";
import type { WireLiveRows, WireNote, WireRow } from "./wire.js";

/*
 * One stream of events for the whole page: of what the view shows. Views that list no prompts are told how many came, and no more.
 */

/** What comes over the stream. */
export type UsageEventView =
  | { readonly kind: "requests"; readonly rows: readonly WireRow[]; readonly more: number }
  | { readonly kind: "note"; readonly note: WireNote }
  /** Prompts may have come that were not told of: the stream begins, or was too slow. */
  | { readonly kind: "missed" };

const EVENTS = new EventTarget();
const COUNTS_ONLY: Query = { limit: 0 };
let following = new AbortController();
let followed = COUNTS_ONLY;
let showOpen: (isOpen: boolean) => void = () => {};
let isToBegin = false;

/** Follows the service's events, with the key of now: called again where another key is to be used. */
export function follow(light: HTMLElement): void {
  showOpen = (isOpen) => {
    light.className = isOpen ? "light on" : "light";
    light.replaceChildren(h("span", isOpen ? "live" : "not live"));
  };
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

/** Once for all changes of this moment: one view goes and another comes. */
function begin(): void {
  if (isToBegin) return;
  isToBegin = true;
  queueMicrotask(() => {
    isToBegin = false;
    following.abort();
    following = new AbortController();
    const onOpen = (isOpen: boolean) => {
      showOpen(isOpen);
      if (isOpen) tell({ kind: "missed" });
    };
    const onEvent = ({ type, data }: { readonly type: string; readonly data: string }) => {
      const event = read(type, data);
      if (event !== null) tell(event);
    };
    void readEvents(withQuery("/usage/events", followed), { onEvent, onOpen }, following.signal);
  });
}

function tell(event: UsageEventView): void {
  EVENTS.dispatchEvent(new CustomEvent("usage", { detail: event }));
}

function read(type: string, data: string): UsageEventView | null {
  switch (type) {
    case "requests": {
      const { rows, more } = JSON.parse(data) as WireLiveRows;
      return { kind: "requests", rows, more };
    }
    case "note":
      return { kind: "note", note: JSON.parse(data) as WireNote };
    case "dropped":
      return { kind: "missed" };
    default:
      return null;
  }
}

/** Calls back with every event until the signal aborts. */
export function onUsage(signal: AbortSignal, called: (event: UsageEventView) => void): void {
  EVENTS.addEventListener("usage", (event) => called((event as CustomEvent<UsageEventView>).detail), { signal });
}
