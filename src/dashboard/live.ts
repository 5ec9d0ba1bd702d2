import { h } from "./dom.js";
import { readEvents } from "./events.js";
import type { WireNote, WireRow } from "./wire.js";

/*
 * One stream of events for the whole page, whatever view is shown.
 */

/** What comes over the stream. */
export type UsageEventView =
  | { readonly kind: "request"; readonly row: WireRow }
  | { readonly kind: "note"; readonly note: WireNote }
  /** Prompts came that were not told of: the stream was away, or too slow. */
  | { readonly kind: "missed" };

const EVENTS = new EventTarget();
let following = new AbortController();

/** Follows the service's events, with the key of now: called again where another key is to be used. */
export function follow(light: HTMLElement): void {
  following.abort();
  following = new AbortController();
  const show = (isOpen: boolean) => {
    light.className = isOpen ? "light on" : "light";
    light.replaceChildren(h("span", null, isOpen ? "live" : "not live"));
  };
  show(false);
  let wasOpen = false;
  const onOpen = (isOpen: boolean) => {
    show(isOpen);
    if (isOpen && wasOpen) tell({ kind: "missed" });
    wasOpen ||= isOpen;
  };
  const onEvent = ({ type, data }: { readonly type: string; readonly data: string }) => {
    const event = read(type, data);
    if (event !== null) tell(event);
  };
  void readEvents("/usage/events", { onEvent, onOpen }, following.signal);
}

function tell(event: UsageEventView): void {
  EVENTS.dispatchEvent(new CustomEvent("usage", { detail: event }));
}

function read(type: string, data: string): UsageEventView | null {
  switch (type) {
    case "request":
      return { kind: "request", row: JSON.parse(data) as WireRow };
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
