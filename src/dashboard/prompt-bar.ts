import { html } from "htm/preact";
import type { VNode } from "preact";
import type { UsageRow } from "../client/index.js";
import { percent, shareOf, whole } from "./format.js";

/** A piece of a horizontal bar. */
export interface Piece {
  readonly kind: "cached" | "expected" | "missed" | "new";
  readonly tokens: number;
}

/** What the pieces' colours mean, in the order in which a prompt has them. */
const PIECES: Readonly<Record<Piece["kind"], string>> = {
  cached: "cached, by the engine",
  expected: "expected to be cached",
  missed: "missed",
  new: "the new turn's own text",
};

/** The colour of a piece, as its element's style. */
export function coloured(kind: Piece["kind"] | "fresh") {
  return { "--colour": `var(--${kind})` };
}

/** Pieces in a row, as wide as their tokens. */
export function pieceBar(pieces: readonly Piece[]): VNode {
  const all = pieces.reduce((sum, { tokens }) => sum + tokens, 0);
  const found = pieces.filter(({ tokens }) => tokens > 0);
  const words = found.map(({ kind, tokens }) => `${whole(tokens)} ${PIECES[kind]}`).join(", ");
  const parts = found.map(({ kind, tokens }) => {
    const style = { ...coloured(kind), width: `${(tokens / all) * 100}%` };
    return html`<span class="part ${kind}" style=${style} title="${whole(tokens)} tokens: ${PIECES[kind]}"></span>`;
  });
  return html`<div class="bar" role="img" aria-label=${words || "no tokens"}>${parts}</div>`;
}

/** A prompt's tokens: cached by the engine, or as expected where it did not report; then what missed; then what is new. */
export function rowPieces(row: UsageRow): readonly Piece[] {
  const { promptTokens: all, reportedPromptTokens: counted, reportedCachedTokens: reported } = row;
  // The engine counts in its own tokens: its share, of memprefix's count.
  const share = shareOf(reported, counted ?? all);
  const cached = share === null ? 0 : Math.min(all, Math.round(all * share));
  const expected = share === null ? Math.min(all, row.expectedCachedTokens) : 0;
  const left = all - cached - expected;
  const fresh = Math.min(left, row.newTokens);
  return [
    { kind: "cached", tokens: cached },
    { kind: "expected", tokens: expected },
    { kind: "missed", tokens: left - fresh },
    { kind: "new", tokens: fresh },
  ];
}

/** The share of a prompt that was cached: by the engine, else as expected, said so. */
export function rowShare(row: UsageRow): { readonly text: string; readonly isExpected: boolean } {
  const reported = shareOf(row.reportedCachedTokens, row.reportedPromptTokens ?? row.promptTokens);
  if (reported !== null) return { text: percent(reported), isExpected: false };
  return { text: percent(shareOf(row.expectedCachedTokens, row.promptTokens)), isExpected: true };
}

/** What the colours mean. */
export function pieceLegend(kinds: readonly Piece["kind"][]): VNode {
  const keys = kinds.map((kind) => html`<span class="key ${kind}" style=${coloured(kind)}>${PIECES[kind]}</span>`);
  return html`<p class="legend">${keys}</p>`;
}

type MissCauseName = NonNullable<UsageRow["miss"]>["cause"];

/** The causes of misses in two words, for chips and filters; `GET /usage/summary` says what to do about each. */
export const CAUSES: Readonly<Record<MissCauseName, string>> = {
  first_prompt: "first prompt",
  new_text: "new text",
  instructions_changed: "instructions changed",
  tools_changed: "tools changed",
  model_changed: "model changed",
  history_changed: "history changed",
  memories_changed: "memories changed",
  expired: "expired",
  evicted: "evicted",
  restarted: "restarted",
  unknown: "unknown",
};

/** A cause as a chip. */
export function causeChip(cause: MissCauseName): VNode {
  return html`<span class=${cause === "unknown" ? "chip plain" : "chip"}>${CAUSES[cause]}</span>`;
}
