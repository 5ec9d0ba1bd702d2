import { characterAt, seenAs } from "./seen-as.js";

/**
 * A text that an operator configured as a marker. Matches in any letter case, with invisible characters in between, and in full-width
 * letters. Escaping inserts a backslash after its first character; backslashes already there do not affect matching.
 */
export class ConfiguredMarker {
  readonly #seen: string;
  /** Characters that can start the marker. */
  readonly #firsts: ReadonlySet<string>;

  constructor(marker: string) {
    this.#seen = [...marker].map(seenAs).join("").toLowerCase();
    const first = characterAt(this.#seen, 0);
    const cases = [first, first.toUpperCase()].filter((character) => [...character].length === 1);
    const wide = cases.filter((character) => character >= "!" && character <= "~").map(fullWidth);
    this.#firsts = new Set([...cases, ...wide]);
  }

  isIn(text: string): boolean {
    return this.escape(text) !== text;
  }

  escape(text: string): string {
    return this.#withEach(text, (at) => (this.#isAt(text, at) ? { taken: 0, given: "\\" } : null));
  }

  /** The inverse of {@link escape}. */
  unescape(text: string): string {
    return this.#withEach(text, (at, end) =>
      text[end] === "\\" && this.#isAt(text, at) ? { taken: 1, given: "" } : null,
    );
  }

  /** The text with something inserted or removed after characters that start the marker. */
  #withEach(
    text: string,
    change: (at: number, end: number) => { readonly taken: number; readonly given: string } | null,
  ): string {
    let changed = "";
    let from = 0;
    for (let at = 0; at < text.length; ) {
      const own = characterAt(text, at);
      const end = at + own.length;
      const made = this.#firsts.has(own) ? change(at, end) : null;
      if (made !== null) {
        changed += text.slice(from, end) + made.given;
        from = end + made.taken;
      }
      at = Math.max(end, from);
    }
    return changed + text.slice(from);
  }

  #isAt(text: string, at: number): boolean {
    let matched = 0;
    for (let i = at; i < text.length && matched < this.#seen.length; ) {
      const own = characterAt(text, i);
      i += own.length;
      const seen = seenAs(own).toLowerCase();
      // One character can be seen as several, and the marker may end with the first of them.
      if (!this.#seen.startsWith(seen, matched) && !seen.startsWith(this.#seen.slice(matched))) return false;
      matched += seen.length;
      if (this.#firsts.has(own)) while (text[i] === "\\") i++;
    }
    return matched >= this.#seen.length;
  }
}

/** Maximum characters of a configured marker, and maximum number of markers. */
const MAX_MARKER_CHARACTERS = 100;
export const MAX_MARKERS = 32;

/** Why a text cannot be a marker, as the end of a sentence; null if it can. */
export function markerProblem(marker: string): string | null {
  if (marker.length > MAX_MARKER_CHARACTERS) return `must have at most ${MAX_MARKER_CHARACTERS} characters`;
  if (marker.includes("\\")) return "must hold no backslash";
  if (/[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}]/u.test(marker)) return "must be one line without control characters";
  if ([...marker].map(seenAs).join("").trim().length < 2) return "must have at least two visible characters";
  if (/^\s|\s$/u.test(marker)) return "must neither begin nor end with white space";
  return null;
}

function fullWidth(character: string): string {
  return String.fromCharCode(character.charCodeAt(0) + 0xfee0);
}
