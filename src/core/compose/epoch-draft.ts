import {
  type EpochReason,
  endOfEpoch,
  newestWithin,
  type PromptTokens,
  type WindowTerms,
} from "../conversation/epoch.js";
import { meaningOf } from "../conversation/window.js";
import { promptCost, smooth } from "../cost/engine-model.js";
import { messagesTokens } from "../prompt/prompt.js";
import type { Digest } from "../text/ids.js";
import { instructionsAtHead } from "../text/message.js";
import { AFRESH, type ComposeInput, draftWith, draftWithin, type PromptDraft, PromptTooLongError } from "./draft.js";
import type { ScopeState } from "./scope-state.js";

/** An epoch whose first prompt has less than this share of its window's tokens says little of what another one would cost. */
const LIKE_A_WINDOW = 0.75;

/** An epoch that begins with a whole history may have this share of the limit; one that begins with a part of it gets that share. */
const ROOMY = 0.75;
const SHORT = 0.5;

/** A draft with its place in the conversation. */
export interface Draft extends PromptDraft {
  /** Null: its history was not cut. */
  readonly epoch: DraftedEpoch | null;
  /** Messages that it has and the client did not send. */
  readonly added: number;
}

/** A prompt's place in its epoch. */
export interface DraftedEpoch {
  /** Why the epoch began with this prompt; null: it continues one. */
  readonly began: EpochReason | null;
  /** How many prompts the epoch has, this one included. */
  readonly prompts: number;
  /** How many messages memstem left out of this prompt, … */
  readonly leftOut: number;
  /** … and, where it did so with this prompt, the meaning of the last one of them. */
  readonly behind: Digest | null;
}

/**
 * Drafts a request's prompt with the messages that its history's terms and its limit choose. Serves nothing. Throws
 * {@link PromptTooLongError}.
 */
export function draftPrompt(state: ScopeState, input: ComposeInput): Draft {
  const { maxPromptTokens, acceptedTokens } = input;
  const most = Math.min(maxPromptTokens ?? Number.POSITIVE_INFINITY, acceptedTokens ?? Number.POSITIVE_INFINITY);
  const draft = draftWindow(state, input, most);
  if (maxPromptTokens != null && draft.totalTokens > maxPromptTokens)
    throw new PromptTooLongError(draft.totalTokens, maxPromptTokens);
  return draft;
}

function draftWindow(state: ScopeState, input: ComposeInput, most: number): Draft {
  const { window = null } = input.historyTerms ?? {};
  switch (window?.kind) {
    case "begins":
      return draftEpoch(state, input, most, window.reason);
    case "continued":
      return draftContinued(state, input, most, window);
    default:
      return draftWhole(state, input, most);
  }
}

/** A prompt that has the request's messages, or the newest of them. */
function draftWhole(state: ScopeState, input: ComposeInput, most: number): Draft {
  const { added = 0, mayCut = false } = input.historyTerms ?? {};
  const draft = draftWith(state, input);
  if (draft.totalTokens <= most) return placedIn(draft, null, added);
  if (mayCut) return draftEpoch(state, input, most, "limit");
  return placedIn(draftWithin(state, input, most, false), null, added);
}

/** A draft with its place. Field by field, as every prompt passes here: V8 takes a microsecond for a copy that gets more fields. */
function placedIn(draft: PromptDraft, epoch: DraftedEpoch | null, added: number): Draft {
  const { prompt, totalTokens, past, replay, choice, selection, section, isCramped, head } = draft;
  return { prompt, totalTokens, past, replay, choice, selection, section, isCramped, head, epoch, added };
}

/** The next prompt of a window's epoch, or the first of another. */
function draftContinued(
  state: ScopeState,
  input: ComposeInput,
  most: number,
  window: WindowTerms & { readonly kind: "continued" },
): Draft {
  const { ratio = 1, isByCost = false } = input.historyTerms ?? {};
  const draft = draftWith(state, { ...input, messages: window.messages });
  // After messages that memstem left out, the window is the longer one.
  const exact = window.leftOut > 0 ? Number.POSITIVE_INFINITY : exactTokens(input, draft);
  const share = isByCost ? (input.shareTokens ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
  const bounds = { ratio, max: most, share, engine: isByCost ? input.engine : null };
  const endBehind = (prompts: readonly PromptTokens[]) => endOfEpoch(prompts, tokensOf(draft), exact, bounds);
  const began = endBehind(window.prompts);
  const another = began === null ? null : draftEpoch(state, input, most, began);
  const others = (window.prompts[0]?.total ?? 0) < LIKE_A_WINDOW * exact ? [] : window.prompts.slice(1);
  // What the epoch began with says less of what another would than its draft does.
  if (another !== null && (began !== "cost" || endBehind([tokensOf(another), ...others]) !== null)) return another;
  const epoch = { began: null, prompts: window.prompts.length + 1, leftOut: window.leftOut, behind: null };
  return placedIn(draft, epoch, window.added);
}

function tokensOf(draft: PromptDraft): PromptTokens {
  return { total: draft.totalTokens, computed: computedTokens(draft) };
}

/**
 * The first prompt of an epoch: the request's messages or, where they are too long, the newest of them. A client's window is cut only where
 * it does not fit; of a whole history so much is left out that the epoch has room to grow.
 */
function draftEpoch(state: ScopeState, input: ComposeInput, most: number, began: EpochReason): Draft {
  const { added = 0, mayCut = false, ratio = 1, window = null } = input.historyTerms ?? {};
  const epoch = { began, prompts: 1, leftOut: 0, behind: null };
  if (!mayCut) {
    const draft = draftExact(state, input);
    return placedIn(draft.totalTokens <= most ? draft : draftWithin(state, input, most, true), epoch, added);
  }
  // What is too long in any case is not drafted whole.
  const near = newestMessages(input, most);
  const draft = draftHeaded(state, near.input, ratio, most);
  const isWhole = window === null || (window.kind === "continued" && window.leftOut > 0);
  const fits = near.leftOut === 0 && draft.totalTokens <= most * (isWhole ? ROOMY : 1);
  if (fits) return placedIn(draft, epoch, added);
  const around = draft.replay.headTokens + retrievedTokens(draft.selection);
  const { input: shorter, ...cut } = newestMessages(input, most * SHORT - around);
  const headed = cut.leftOut === 0 ? draft : draftHeaded(state, shorter, ratio, most);
  const short = headed.totalTokens <= most ? headed : draftWithin(state, shorter, most, true);
  return placedIn(short, { ...epoch, ...cut }, Math.max(0, added - cut.leftOut));
}

/** A request with its newest messages that come to at most so many tokens, and what that leaves out. */
function newestMessages(input: ComposeInput, tokens: number) {
  const { messages, countTokens } = input;
  const first = instructionsAtHead(messages);
  const said = messages.slice(first);
  const kept = newestWithin(said, tokens, countTokens);
  const leftOut = said.length - kept.length;
  const last = said[leftOut - 1];
  return {
    input: leftOut === 0 ? input : { ...input, messages: [...messages.slice(0, first), ...kept] },
    leftOut,
    behind: last === undefined ? null : meaningOf(last),
  };
}

/**
 * With its memories in front, and of others, for the epochs to come, as much as the ratio lets the prompts grow; none where the limit leaves
 * no room to grow.
 */
function draftHeaded(state: ScopeState, input: ComposeInput, ratio: number, most: number): PromptDraft {
  const headed = draftWith(state, input, null, { inFront: true, carried: ratio - 1 });
  const isLong = headed.totalTokens > most * SHORT && (headed.head?.selection.ordering.carried.size ?? 0) > 0;
  return isLong ? draftWith(state, input, null, { inFront: true, carried: 0 }) : headed;
}

/**
 * A window's own messages, which no later prompt continues: with its memories in front of them where others may be carried, or else where
 * that costs less. With few memories the frame of a second section costs more than what is found cached.
 */
function draftExact(state: ScopeState, input: ComposeInput): PromptDraft {
  const law = smooth(input.engine);
  const costOf = (draft: PromptDraft) => promptCost(law, draft.totalTokens, draft.totalTokens - computedTokens(draft));
  const inFront = draftWith(state, input, null, { inFront: true, carried: null });
  if (input.memoryBudgetTokens !== null || input.memoryBudgetRatio !== null) return inFront;
  const inQuestion = draftWith(state, input, null, AFRESH);
  return costOf(inFront) <= costOf(inQuestion) ? inFront : inQuestion;
}

/** Tokens of the prompt of the request's own messages and memories, without annotations. */
function exactTokens({ messages, countTokens }: ComposeInput, { selection }: PromptDraft): number {
  return messagesTokens(messages, countTokens) + retrievedTokens(selection);
}

/**
 * Tokens that the engine has to compute for a prompt. The prompt of a new epoch hits where its head does, another up to its newest turn, and
 * the answer after that, which the engine computed itself.
 */
export function computedTokens({ totalTokens, replay, section }: PromptDraft): number {
  const isWhole = replay.turns.length > 0 && replay.cachedTokens === replay.tokens;
  return totalTokens - (isWhole ? section.tokensBefore : Math.max(replay.cachedTokens, replay.headTokens));
}

function retrievedTokens({ resolution }: PromptDraft["selection"]): number {
  return resolution.blocks.reduce((sum, { tokens }) => sum + tokens, 0);
}
