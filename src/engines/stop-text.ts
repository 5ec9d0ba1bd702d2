import { largest, smallest } from "../core/extremes.js";
/** What may be handed on of a text so far, and whether it has ended. */
export interface Handed {
  readonly text: string;
  readonly stopped: boolean;
}

/** Cuts a growing text at the first stop text. What could still become the beginning of one is held back until that is known. */
export class StopText {
  #held = "";
  readonly #stops: readonly string[];

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "");
  }

  /** Takes more text and gives what can be handed on. */
  push(text: string): Handed {
    const seen = this.#held + text;
    const ends = this.#stops.map((stop) => seen.indexOf(stop)).filter((at) => at >= 0);
    if (ends.length > 0) {
      this.#held = "";
      return { text: seen.slice(0, smallest(ends)), stopped: true };
    }
    const held = largest(
      this.#stops.map((stop) => overlap(seen, stop)),
      0,
    );
    this.#held = seen.slice(seen.length - held);
    return { text: seen.slice(0, seen.length - held), stopped: false };
  }

  /** What was held back, when no more text comes. */
  rest(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}

/** Length of the longest end of the text that the stop text begins with. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
