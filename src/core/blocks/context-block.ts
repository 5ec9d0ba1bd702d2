import type { Digest, Label } from "../text/ids.js";
import { wellFormed } from "../text/storable-text.js";

/**
 * One unit of external context: one memory at one version of its text (docs/internals/algorithms.md, "The field's words"). Two memories
 * with the same text share a block, so a prompt never holds the same text twice.
 */
export interface ContextBlock {
  readonly label: Label;
  /** Canonical text, see {@link canonicalText}. */
  readonly text: string;
  readonly textDigest: Digest;
  /** Tokens of the block's rendered line, line break included. */
  readonly tokens: number;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: vertical tab and form feed are line breaks to some readers of a prompt
const LINE_BREAKS = /\r\n|[\r\u000b\u000c\u0085\u2028\u2029]/g;

/**
 * The one form of a memory's text that is compared, stored and rendered: every kind of line break becomes `\n`, what is no Unicode
 * becomes U+FFFD, and white space at the ends goes. Nothing else is changed.
 */
export function canonicalText(text: string): string {
  return wellFormed(text.replace(LINE_BREAKS, "\n")).trim();
}
