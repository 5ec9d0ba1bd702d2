import { html } from "htm/preact";
import type { VNode } from "preact";
import type { WireRow } from "./wire.js";

type MissCauseName = WireRow["causes"][number]["cause"];

/** The causes of missed tokens in two words, for chips and filters; `GET /usage/misses` says what to do about each. */
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
export function causeChip(cause: MissCauseName): VNode {
  return html`<span class=${cause === "unknown" ? "chip plain" : "chip"}>${CAUSES[cause]}</span>`;
}
