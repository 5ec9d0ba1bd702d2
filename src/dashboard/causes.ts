import { h } from "./dom.js";
import type { WireRow } from "./wire.js";

/** A cause of missed tokens. */
export type MissCauseName = WireRow["causes"][number]["cause"];

/** The causes in two words, for chips and filters; `GET /usage/misses` says what to do about each. */
export const CAUSES: Readonly<Record<MissCauseName, string>> = {
  rewritten_history: "history rewritten",
  changed_instructions: "instructions changed",
  changed_order: "order changed",
  new_memories: "new memories",
  new_epoch: "new epoch",
  retention: "retention",
  expired: "expired",
  evicted: "evicted",
  displaced: "displaced by others",
  below_minimum: "below minimum",
  engine_restart: "engine restart",
  in_flight: "in flight",
  unknown: "unknown",
};

/** A cause as a chip. */
export function causeChip(cause: MissCauseName): HTMLElement {
  return h("span", { class: cause === "unknown" ? "chip plain" : "chip" }, CAUSES[cause]);
}
