import { html } from "htm/preact";
import type { VNode } from "preact";
import type { UsageRow } from "../client/index.js";
import { percent, shareOf, whole } from "./format.js";

export interface Piece {
  readonly kind: "cached" | "expected" | "missed" | "new";
  readonly tokens: number;
}

/** Legends of the pieces' colours, in their order in a prompt. */
const PIECES: Readonly<Record<Piece["kind"], string>> = {
  cached: "cached, by the engine",
  expected: "expected to be cached",
  missed: "missed",
  new: "the new turn's own text",
};

export function coloured(kind: Piece["kind"] | "fresh") {
  return { "--colour": `var(--${kind})` };
}

/** Pieces in a row, in proportion to their tokens. */
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

/** A prompt's tokens: cached (as the engine reported, else as expected), then missed, then new. */
export function rowPieces(row: UsageRow): readonly Piece[] {
  const { promptTokens: all, reportedPromptTokens: counted, reportedCachedTokens: reported } = row;
  // The engine counts other tokens: apply its share to memprefix's count.
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

/** The cached share of a prompt, as the engine reported, else as expected. */
export function rowShare(row: UsageRow): { readonly text: string; readonly isExpected: boolean } {
  const reported = shareOf(row.reportedCachedTokens, row.reportedPromptTokens ?? row.promptTokens);
  if (reported !== null) return { text: percent(reported), isExpected: false };
  return { text: percent(shareOf(row.expectedCachedTokens, row.promptTokens)), isExpected: true };
}

export function pieceLegend(): VNode {
  const keys = (["cached", "expected", "missed", "new"] as const).map(
    (kind) => html`<span class="key ${kind}" style=${coloured(kind)}>${PIECES[kind]}</span>`,
  );
  return html`<p class="legend">${keys}</p>`;
}

type MissCauseName = NonNullable<UsageRow["miss"]>["cause"];

/** Short names of causes, for chips and filters; `GET /usage/summary` has the advice. */
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
  unknown: "unknown",
};

export function causeChip(cause: MissCauseName): VNode {
  return html`<span class=${cause === "unknown" ? "chip plain" : "chip"}>${CAUSES[cause]}</span>`;
}
