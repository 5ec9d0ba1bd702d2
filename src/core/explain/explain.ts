/*
 * explain: why a prompt hit the prefix cache as far as it did. Outlines the prompt and the earlier ones by digests, then finds and names
 * the first difference.
 * Enters: stored prompts and the engine's reports. Leaves: an explanation with cause, tokens and cost, as data and as text.
 */

import type { BlockRegister } from "../blocks/block-register.js";
import { ownTurn, type StoredPrompt } from "../compose/plan.js";
import { type CacheReport, cachedOf, IN_FLIGHT_MS, ownReport, reachOf } from "../context-index/cache-report.js";
import type { ResidencyConfig } from "../context-index/context-index.js";
import type { Turn } from "../conversation/conversation.js";
import { cacheable, type EngineModel, modelAfter, promptCost } from "../cost/engine-model.js";
import type { InjectedBlock } from "../prompt/section.js";
import type { ConversationId, Label, RequestId } from "../text/ids.js";
import { isPlainMessage, type TokenCounter } from "../text/message.js";
import type {
  Difference,
  EngineVerdict,
  Explanation,
  IndexVerdict,
  MissCause,
  NearestPrompt,
  PlaceInPrompt,
  PromptPrice,
  Waste,
  WhyLeft,
  WhyLess,
} from "./explanation.js";
import { mostSegments, type Outline, PromptOutlines, type Segment, segmentTokens } from "./prompt-outline.js";

/** A composed request and the prompts it is compared with. */
export interface ExplainInput {
  readonly requestId: RequestId;
  readonly prompt: StoredPrompt;
  /** Earlier prompts of the same scope, in any order. */
  readonly earlier: readonly StoredPrompt[];
  /** Whether those are all of them. */
  readonly isComplete: boolean;
  readonly register: BlockRegister;
  readonly engine: EngineModel;
  /** The limits of the engine's residency model. */
  readonly limits: ResidencyConfig;
  readonly countTokens: TokenCounter;
}

/** An earlier prompt with the prefix it shares with the explained one. */
export interface Candidate {
  readonly prompt: StoredPrompt;
  readonly outline: Outline;
  readonly shared: SharedPrefix;
}

/** A prompt's parts, and the earlier prompt with which it shares the longest prefix. */
export interface ComparedPrompt {
  readonly outline: Outline;
  /** Tokens of its segments. */
  readonly sizes: readonly number[];
  /** Null: the scope has no earlier prompt. */
  readonly nearest: Candidate | null;
}

/** Finds the earlier prompt that shares the longest prefix with a prompt. Throws if the register does not know a block of one. */
export function comparePrompt({ prompt, earlier, register, countTokens }: ExplainInput): ComparedPrompt {
  const outlines = new PromptOutlines(register.textOf);
  const outline = outlines.outlineOf(prompt);
  const sizes = outline.segments.map((segment) => segmentTokens(segment, register, countTokens));
  return { outline, sizes, nearest: nearestOf(prompt, outline, earlier, outlines) };
}

/**
 * Explains why a prompt hit as far as it did. Prompts are rebuilt as outlines of digests and labels, so composing stores nothing for it.
 * Pure: the same rows give the same explanation. Throws if the register does not know a block of a prompt.
 */
export function explain(input: ExplainInput, compared: ComparedPrompt): Explanation {
  const { prompt, register, countTokens } = input;
  const engine = modelAfter(input.engine, prompt.besideTokens);
  const { outline, sizes, nearest } = compared;
  const total = ownTurn(prompt).promptTokens;
  const expected = prompt.plan?.expectedCachedTokens ?? 0;
  const tokens = { total, shared: 0, expected, reported: ownOf(prompt)?.cachedTokens ?? null };
  const base = {
    requestId: input.requestId,
    compared: input.earlier.length,
    comparedAll: input.isComplete,
    engine: engineVerdict(input, nearest?.prompt ?? null, expected),
  };
  if (nearest === null) {
    return {
      ...base,
      nearest: null,
      difference: null,
      cause: { kind: "first_prompt" },
      tokens,
      index: { kind: "nothing_shared" },
      lost: waste(engine, 0, 0),
      behind: waste(engine, 0, 0),
    };
  }
  const segments = endOfErased(outline, nearest, sizes, expected);
  const whole = sum(sizes, segments);
  const partly = sharedTextTokens(outline.segments[segments], nearest.outline.segments[segments], countTokens);
  const shared = Math.min(whole + partly, total);
  const differs = missCause({ prompt, outline }, nearest, nearest.shared.segments, register);
  const reason = prompt.plan?.epoch?.began ?? null;
  const cause: MissCause =
    reason === null || differs.kind === "changed_instructions" ? differs : { kind: "new_epoch", reason };
  const behind = sharedAfter(outline, nearest.outline, segments, sizes, partly);
  const tracked = trackedTokens(outline, nearest.outline, segments, sizes);
  const index = indexVerdict(input, nearest, { shared, tracked, expected });
  return {
    ...base,
    nearest: describe(nearest.prompt, prompt),
    difference: differenceAt(outline, nearest, segments, shared),
    cause,
    tokens: { ...tokens, shared },
    index,
    lost: lostOf(prompt, index, engine, shared),
    behind: waste(engine, behind, promptCost(engine, total, shared) - promptCost(engine, total, shared + behind)),
  };
}

/**
 * The earlier prompt with the longest shared prefix. Ties: one that is not evicted, then one of the same conversation, then the newest,
 * which used the prefix last.
 */
function nearestOf(
  prompt: StoredPrompt,
  outline: Outline,
  earlier: readonly StoredPrompt[],
  outlines: PromptOutlines,
): Candidate | null {
  const { conversationId } = ownTurn(prompt);
  let best: Candidate | null = null;
  for (const candidate of earlier) {
    if (best !== null && mostSegments(candidate) < best.shared.segments) continue;
    const other = outlines.outlineOf(candidate);
    const next = { prompt: candidate, outline: other, shared: sharedPrefix(outline, other) };
    if (best === null || isNearer(next, best, conversationId)) best = next;
  }
  return best;
}

function isNearer(a: Candidate, b: Candidate, conversation: ConversationId | null): boolean {
  const rank = ({ shared, prompt }: Candidate): readonly number[] => {
    const { conversationId, id } = ownTurn(prompt);
    const sameConversation = conversation !== null && conversationId === conversation;
    return [shared.segments, shared.characters, Number(!prompt.evicted), Number(sameConversation), id];
  };
  const other = rank(b);
  for (const [at, value] of rank(a).entries()) if (value !== other[at]) return value > (other[at] ?? 0);
  return false;
}

function describe(nearest: StoredPrompt, prompt: StoredPrompt): NearestPrompt {
  const { conversationId, promptTokens } = ownTurn(nearest);
  const same = conversationId === ownTurn(prompt).conversationId ? ("same" as const) : ("other" as const);
  return {
    requestId: nearest.requestId,
    conversation: conversationId === null ? "none" : same,
    ageMs: Math.max(0, prompt.at - nearest.at),
    evicted: nearest.evicted,
    totalTokens: promptTokens,
  };
}

/**
 * The end of the shared prefix if the nearest prompt's section has lost a forgotten memory, whose position is unknown. The index still knew
 * it when the request was planned: blocks that it expected to hit were the same.
 */
function endOfErased(here: Outline, nearest: Candidate, sizes: readonly number[], expected: number): number {
  const { segments } = nearest.shared;
  let end = segments;
  if (nearest.outline.segments[segments]?.kind !== "erased") return end;
  const isKnown = (kind: Segment["kind"] | undefined) => kind === "opening" || kind === "block";
  while (isKnown(here.segments[end]?.kind) && sum(sizes, end + 1) <= expected) end++;
  return end;
}

function differenceAt(here: Outline, nearest: Candidate, at: number, token: number): Difference {
  const there = nearest.outline;
  const segment = here.segments[at];
  const last = here.messages.at(-1) ?? -1;
  return {
    message: here.messages[at] ?? there.messages[nearest.shared.segments] ?? last + 1,
    token,
    block: blockNumber(here, at),
    here: placeOf(segment),
    there: placeOf(there.segments[Math.min(at, nearest.shared.segments)]),
  };
}

/** The index of a block in its section; null for any other segment. */
function blockNumber({ segments }: Outline, at: number): number | null {
  if (segments[at]?.kind !== "block") return null;
  const before = segments.slice(0, at);
  return before.length - 1 - before.findLastIndex(({ kind }) => kind === "opening");
}

function placeOf(segment: Segment | undefined): PlaceInPrompt | null {
  if (segment === undefined) return null;
  const isPlain = segment.kind === "instructions" || segment.kind === "message";
  return {
    kind: segment.kind,
    role: isPlain ? (segment.plain?.role ?? null) : "user",
    digest: isPlain ? segment.digest : null,
    label: segment.kind === "block" ? segment.block.label : null,
  };
}

/** Tokens after the difference that the earlier prompt also has after it, each as often as there. */
function sharedAfter(here: Outline, there: Outline, at: number, sizes: readonly number[], partly: number): number {
  const left = new Map<string, number>();
  for (const { key } of there.segments.slice(at)) left.set(key, (left.get(key) ?? 0) + 1);
  let tokens = 0;
  for (const [place, { key }] of here.segments.entries()) {
    const times = place < at ? 0 : (left.get(key) ?? 0);
    if (times === 0) continue;
    left.set(key, times - 1);
    tokens += (sizes[place] ?? 0) - (place === at ? partly : 0);
  }
  return Math.max(0, tokens);
}

/** Shared tokens that the engine's cache could have served, less those that it did serve, by its report or by the index. */
function lostOf(prompt: StoredPrompt, index: IndexVerdict, engine: EngineModel, shared: number): Waste {
  const total = ownTurn(prompt).promptTokens;
  const possible = cacheable(engine, shared);
  const hit =
    reportedHere(prompt, total) ?? (index.kind === "left" ? cacheable(engine, shared - index.tokens) : possible);
  // Reported hits are exact: they must not be rounded to blocks again.
  const exact = { ...engine, blockTokens: 1, minimumPrefixTokens: 0 };
  return waste(engine, Math.max(0, possible - hit), promptCost(exact, total, hit) - promptCost(engine, total, shared));
}

function waste(engine: EngineModel, tokens: number, amount: number): Waste {
  const unit: PromptPrice["unit"] = engine.cost.kind === "time" ? "ms" : "money";
  return { tokens, price: { unit, amount: tokens === 0 ? 0 : Math.max(0, Number(amount.toPrecision(6))) } };
}

/** Tokens of the first segments. */
function sum(sizes: readonly number[], segments: number): number {
  return sizes.slice(0, segments).reduce((total, size) => total + size, 0);
}

/**
 * The shared tokens that the context index can track. It identifies prompts by the digest before each turn's blocks, then by blocks, then
 * as a whole. It does not track other shared text, such as one of two instruction messages or the start of a question.
 *
 * @param shared number of leading segments that are the same
 * @param sizes tokens of this prompt's segments
 */
function trackedTokens(here: Outline, there: Outline, shared: number, sizes: readonly number[]): number {
  let tracked = 0;
  for (const [end, isServed] of there.ends) {
    const isEarlierTurn = here.ends.get(end) === true && end < here.segments.length;
    if (isServed && end <= shared && isEarlierTurn) tracked = end;
  }
  for (const [anchor, isServed] of there.anchors) {
    if (!isServed || anchor > shared || !here.anchors.has(anchor)) continue;
    let end = anchor;
    if (
      here.segments[anchor]?.kind === "opening" &&
      here.segments[anchor + 1]?.kind === "block" &&
      anchor + 2 <= shared
    ) {
      end = anchor + 1;
      while (end < shared && here.segments[end]?.kind === "block") end++;
    }
    tracked = Math.max(tracked, end);
  }
  return sizes.slice(0, tracked).reduce((sum, size) => sum + size, 0);
}

/**
 * Whether the shared prefix was still expected, and if not, why, as far as known.
 *
 * @param tracked tokens of the prefix that the index once held; `expected`: those that it held when the request was planned
 */
function indexVerdict(
  { prompt, earlier, limits, engine }: ExplainInput,
  { prompt: nearest, outline }: Candidate,
  { shared, tracked, expected }: { readonly shared: number; readonly tracked: number; readonly expected: number },
): IndexVerdict {
  if (shared === 0) return { kind: "nothing_shared" };
  if (expected >= tracked) return { kind: "expected" };
  const left = (because: WhyLeft): IndexVerdict => ({ kind: "left", tokens: tracked - expected, because });
  if (nearest.evicted) return left({ kind: "evicted" });
  if (outline.segments.some(({ kind }) => kind === "erased")) return left({ kind: "forgotten" });
  const age = prompt.at - nearest.at;
  if ((limits.kind === "ttl" || limits.kind === "ttl-and-capacity") && age >= limits.ttlMs)
    return left({ kind: "expired", ttlMs: limits.ttlMs });
  const after = ownTurn(nearest).id;
  const short = earlier.find((request) => ownTurn(request).id > after && isShort(request));
  if (short !== undefined && short.requestId !== null) return left({ kind: "reported", requestId: short.requestId });
  // What is no whole block was never expected.
  if (tracked - expected < engine.blockTokens) return { kind: "expected" };
  if (limits.kind === "capacity" || limits.kind === "ttl-and-capacity")
    return left({ kind: "displaced", tokens: limits.tokens });
  return left(limits.kind === "slots" ? limits : { kind: "unknown" });
}

/** Whether the engine reported less than expected, by more than its steps can hide. */
function isShort(prompt: StoredPrompt): boolean {
  const { plan } = prompt;
  const report = reportOf(prompt);
  return plan !== null && report !== null && reachOf({ plan }, report) < plan.expectedCachedTokens;
}

/** The engine's report with what it counts besides the prompt. */
function reportOf({ report, besideTokens }: StoredPrompt): CacheReport | null {
  return report && { ...report, besideTokens };
}

/** The engine's report of the prompt alone. */
function ownOf(prompt: StoredPrompt): CacheReport | null {
  const report = reportOf(prompt);
  return report && ownReport(report, ownTurn(prompt).promptTokens);
}

/** The cached tokens of the engine's report, in memprefix's count of the prompt; null if not reported. */
export function reportedHere(prompt: StoredPrompt, total: number): number | null {
  const report = reportOf(prompt);
  return report === null ? null : Math.min(total, cachedOf(report, total));
}

/** Whether the engine had what was expected, and if not, the likeliest reason. */
function engineVerdict(
  { prompt, engine }: ExplainInput,
  nearest: StoredPrompt | null,
  expected: number,
): EngineVerdict {
  const reported = reportedHere(prompt, ownTurn(prompt).promptTokens);
  if (reported === null) return { kind: "not_reported" };
  if (reported >= expected)
    return reported > expected ? { kind: "more", tokens: reported - expected } : { kind: "as_expected" };
  const tokens = expected - reported;
  const less = (because: WhyLess): EngineVerdict => ({ kind: "less", tokens, because });
  const { minimumPrefixTokens: minimumTokens, blockTokens } = engine;
  const isNothing = prompt.report?.cachedTokens === 0;
  if (isNothing && expected + prompt.besideTokens < minimumTokens)
    return less({ kind: "below_minimum", minimumTokens });
  if (tokens < blockTokens) return less({ kind: "block_rounding", blockTokens });
  if (!isShort(prompt)) return { kind: "as_expected" };
  if (nearest?.evicted === true) return less({ kind: "evicted" });
  if (nearest !== null && prompt.at - nearest.at < IN_FLIGHT_MS) return less({ kind: "in_flight" });
  const billsWrites = engine.cost.kind === "money" && engine.cost.written !== engine.cost.uncached;
  return less({ kind: isNothing && billsWrites ? "no_breakpoint" : "unknown" });
}

/** How much of two prompts is the same, from the start. */
export interface SharedPrefix {
  /** Whole segments. */
  readonly segments: number;
  /** Characters of the first two differing segments, if both are plain messages with known text. */
  readonly characters: number;
}

/** Lower bound of the bytes that two outlined prompts share. */
function sharedPrefix(a: Outline, b: Outline): SharedPrefix {
  const most = Math.min(a.segments.length, b.segments.length);
  let segments = 0;
  while (segments < most && a.segments[segments]?.key === b.segments[segments]?.key) segments++;
  return { segments, characters: sharedText(a.segments[segments], b.segments[segments])?.length ?? 0 };
}

/** Tokens that two differing messages share; without the last one, which may be tokenized differently across the difference. */
function sharedTextTokens(a: Segment | undefined, b: Segment | undefined, countTokens: TokenCounter): number {
  const text = sharedText(a, b) ?? "";
  return text === "" ? 0 : Math.max(0, countTokens(text) - 1);
}

function sharedText(a: Segment | undefined, b: Segment | undefined): string | null {
  const [one, other] = [textIn(a), textIn(b)];
  if (one === null || other === null || one.role !== other.role) return null;
  return one.text.slice(0, sharedCharacters(one.text, other.text));
}

/** The text of a message without other fields, which could come before the text. */
function textIn(segment: Segment | undefined): { readonly role: string; readonly text: string } | null {
  if (segment?.kind !== "instructions" && segment?.kind !== "message") return null;
  const { plain } = segment;
  return plain !== null && isPlainMessage(plain) ? { role: plain.role, text: plain.content } : null;
}

/** Binary search: comparing slices is much faster than comparing characters, and messages can be long. */
function sharedCharacters(a: string, b: string): number {
  let [same, differing] = [0, Math.min(a.length, b.length) + 1];
  while (differing - same > 1) {
    const middle = (same + differing) >>> 1;
    if (a.slice(same, middle) === b.slice(same, middle)) same = middle;
    else differing = middle;
  }
  return same;
}

export interface OutlinedPrompt {
  readonly prompt: Pick<StoredPrompt, "turns">;
  readonly outline: Outline;
}

/** The cause of the difference between two prompts of one scope, which are equal before segment `at`. Pure; reads labels only. */
function missCause(here: OutlinedPrompt, there: OutlinedPrompt, at: number, register: BlockRegister): MissCause {
  const [a, b] = [here.outline.segments[at], there.outline.segments[at]];
  if (a === undefined) return { kind: "repeated" };
  if (b === undefined) return { kind: "appended" };
  if (a.kind === "erased" || b.kind === "erased") return { kind: "forgotten_memory" };
  if (a.kind === "instructions" || b.kind === "instructions") return { kind: "changed_instructions" };
  const own = ownTurn(here.prompt);
  const replayed = here.prompt.turns.find(({ turn }) => turn.id === b.turn && turn !== own)?.turn;
  if (replayed !== undefined && isOfSection(b)) return notReplayed(replayed, here.prompt, b);
  const kept = there.prompt.turns.some(({ turn }) => turn.id === a.turn);
  if (kept && isOfSection(a)) return { kind: "fresh_start", where: "there" };
  const sameConversation = own.conversationId !== null && own.conversationId === ownTurn(there.prompt).conversationId;
  const otherHistory: MissCause = { kind: sameConversation ? "rewritten_history" : "other_history" };
  if (a.turn !== own.id) return otherHistory;
  const isLast = a.kind === "message" && a.offset === own.given.length - 1;
  if (isOfSection(a) ? isOfSection(b) || mayHoldSection(b) : isLast && isOfSection(b)) {
    return memoryCause(sideAt(here, a), sideAt(there, b), register);
  }
  return isLast && !sameConversation ? { kind: "other_question" } : otherHistory;
}

function isOfSection({ kind }: Segment): boolean {
  return kind === "opening" || kind === "block" || kind === "annotation" || kind === "closing";
}

/** Sections are in users' messages. */
function mayHoldSection(segment: Segment): boolean {
  return segment.kind === "message" && (segment.plain === null || segment.plain.role === "user");
}

function notReplayed(turn: Turn, { turns }: OutlinedPrompt["prompt"], lost: Segment): MissCause {
  const at = turns.findIndex((spoken) => spoken.turn.id === turn.id);
  if (turns.slice(at + 1).some((later) => later.turn.freshStart)) return { kind: "fresh_start", where: "here" };
  const what = lost.kind === "annotation" || turn.injection.blocks.length === 0 ? "annotations" : "memories";
  return { kind: "retention", retention: turn.retention, what };
}

/** One prompt's block at the difference, and all blocks of its section. */
interface SectionSide {
  /** Null: there is no block, because the section has ended or does not exist. */
  readonly block: InjectedBlock | null;
  readonly all: ReadonlySet<Label>;
}

function sideAt({ outline }: OutlinedPrompt, segment: Segment): SectionSide {
  const blocks = isOfSection(segment)
    ? outline.segments.flatMap((other) => (other.kind === "block" && other.turn === segment.turn ? [other.block] : []))
    : [];
  const first = segment.kind === "opening" ? (blocks[0] ?? null) : null;
  return {
    block: segment.kind === "block" ? segment.block : first,
    all: new Set(blocks.map(({ label }) => label)),
  };
}

function memoryCause(here: SectionSide, there: SectionSide, register: BlockRegister): MissCause {
  if (here.block === null || there.block === null) {
    if (here.block !== null) {
      return { kind: "new_memories", label: here.block.label, instead: null, insteadMoved: false };
    }
    if (there.block !== null) return { kind: "missing_memory", label: there.block.label, instead: null };
    return { kind: "other_annotations" };
  }
  const [is, was] = [here.block.label, there.block.label];
  const replaced = onlyInOne(here.block.replaces, there.block.replaces);
  if (is === was) return { kind: "updated_text", was: replaced ?? was, is };
  const successor = register.successor(was);
  if (successor !== null && here.all.has(successor)) return { kind: "updated_text", was, is: successor };
  if (!there.all.has(is)) return { kind: "new_memories", label: is, instead: was, insteadMoved: here.all.has(was) };
  return here.all.has(was)
    ? { kind: "changed_order", here: is, there: was }
    : { kind: "missing_memory", label: was, instead: is };
}

/** A label that only one of the blocks replaces. */
function onlyInOne(a: readonly Label[], b: readonly Label[]): Label | undefined {
  return a.find((label) => !b.includes(label)) ?? b.find((label) => !a.includes(label));
}
