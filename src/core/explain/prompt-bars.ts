import type { BlockRegister } from "../blocks/block-register.js";
import { ownTurn, type StoredPrompt } from "../compose/plan.js";
import { renderAnnotation } from "../prompt/section.js";
import type { Label } from "../text/ids.js";
import { messageText, type TokenCounter } from "../text/message.js";
import { type ComparedPrompt, reportedHere } from "./explain.js";
import { type Outline, type Segment, segmentTokens } from "./prompt-outline.js";

/**
 * How a part of a prompt is painted: `cached` (most of it, by the engine's report), `expected` to be cached and not reported so, `carried`
 * (a memory that was not retrieved), `annotation`, `again` (the earlier prompt has it, and it is computed again), or `new`.
 */
export type BarState = "cached" | "expected" | "carried" | "annotation" | "again" | "new";

export interface PromptBar {
  /** Index of its message, from 0. */
  readonly message: number;
  readonly kind: Segment["kind"];
  /** Of its message; null: it was erased. */
  readonly role: string | null;
  /** Of a block. */
  readonly label: Label | null;
  /** Estimated; 0 for what was erased. */
  readonly tokens: number;
  /** Those that the engine had cached, in the same count; null: not reported. */
  readonly cachedTokens: number | null;
  readonly expectedTokens: number;
  readonly state: BarState;
  /** Whether the other prompt begins with the same up to and including this part. */
  readonly isShared: boolean;
  /** Null: erased, or not asked for. */
  readonly text: string | null;
}

/** A prompt as bars, beside the earlier one with which it shares the longest prefix. */
export interface PromptBars {
  readonly here: readonly PromptBar[];
  /** Null: there is no earlier one. Its own cached tokens are not among them. */
  readonly there: readonly PromptBar[] | null;
  /** How many bars at their beginning are the same. */
  readonly shared: number;
}

/** What bars are made from, besides the comparison. */
export interface BarsInput {
  readonly prompt: StoredPrompt;
  readonly register: BlockRegister;
  readonly countTokens: TokenCounter;
  /** Blocks of the prompt's own turn that were not retrieved. */
  readonly carried: ReadonlySet<Label>;
  /** Whether bars contain their text. */
  readonly hasText: boolean;
}

/** Paints a prompt and its nearest earlier one. Pure. */
export function promptBars(input: BarsInput, { outline, sizes, nearest }: ComparedPrompt): PromptBars {
  const { prompt, register, countTokens } = input;
  const shared = nearest?.shared.segments ?? 0;
  const expected = prompt.plan?.expectedCachedTokens ?? 0;
  const reported = reportedHere(prompt, ownTurn(prompt).promptTokens);
  const earlier = new Set(nearest?.outline.segments.map(({ key }) => key));
  const own = ownTurn(prompt).id;
  const here = barsOf(input, outline, sizes, { shared, expected, reported }, (segment) => {
    if (segment.kind === "block" && segment.turn === own && input.carried.has(segment.block.label)) return "carried";
    return earlier.has(segment.key) ? "again" : "new";
  });
  if (nearest === null) return { here, there: null, shared: 0 };
  const known = new Set(outline.segments.map(({ key }) => key));
  const theirs = nearest.outline.segments.map((segment) => segmentTokens(segment, register, countTokens));
  const limits = { shared, expected: 0, reported: null };
  const there = barsOf(input, nearest.outline, theirs, limits, ({ key }) => (known.has(key) ? "again" : "new"));
  return { here, there, shared };
}

interface Limits {
  /** Segments that both prompts begin with. */
  readonly shared: number;
  /** Tokens from the prompt's beginning. */
  readonly expected: number;
  readonly reported: number | null;
}

function barsOf(
  { register, hasText }: BarsInput,
  { segments, messages }: Outline,
  sizes: readonly number[],
  { shared, expected, reported }: Limits,
  otherState: (segment: Segment) => BarState,
): PromptBar[] {
  let start = 0;
  return segments.map((segment, at) => {
    const tokens = sizes[at] ?? 0;
    const upTo = (limit: number) => Math.min(tokens, Math.max(0, Math.round(limit) - start));
    const cachedTokens = reported === null ? null : upTo(reported);
    const expectedTokens = upTo(expected);
    start += tokens;
    const isPlain = segment.kind === "instructions" || segment.kind === "message";
    const other = otherState(segment);
    return {
      message: messages[at] ?? 0,
      kind: segment.kind,
      role: isPlain ? (segment.plain?.role ?? null) : "user",
      label: segment.kind === "block" ? segment.block.label : null,
      tokens,
      cachedTokens,
      expectedTokens,
      state: stateOf(segment, { tokens, cachedTokens, expectedTokens }, other),
      isShared: at < shared,
      text: hasText ? textOf(segment, register) : null,
    };
  });
}

function stateOf(
  { kind }: Segment,
  { tokens, cachedTokens, expectedTokens }: Pick<PromptBar, "tokens" | "cachedTokens" | "expectedTokens">,
  other: BarState,
): BarState {
  if (kind === "annotation") return "annotation";
  if (other === "carried") return other;
  if (tokens > 0 && (cachedTokens ?? 0) * 2 >= tokens) return "cached";
  if (tokens > 0 && expectedTokens * 2 >= tokens) return "expected";
  return other;
}

function textOf(segment: Segment, register: BlockRegister): string | null {
  switch (segment.kind) {
    case "instructions":
    case "message":
      return segment.plain === null ? null : messageText(segment.plain);
    case "block":
      return register.textOf(segment.block.label);
    case "annotation":
      return renderAnnotation(segment.annotation, register.textOf);
    default:
      return null;
  }
}
