import { DROPS_NOTHING, NOTHING_STANDING, type RecalledTurn, type Turn } from "../conversation/conversation.js";
import {
  type EpochReason,
  endOfEpoch,
  newestWithin,
  type PromptTokens,
  type WindowTerms,
} from "../conversation/epoch.js";
import { injectionTokens } from "../conversation/injecting.js";
import { withoutRepeats } from "../conversation/repeats.js";
import { withoutSpanReferences, withSpanReferences } from "../conversation/spans.js";
import { promptCost, smooth } from "../cost/engine-model.js";
import { carryOver } from "../ordering/carry-over.js";
import { messagesTokens, Prompt } from "../prompt/prompt.js";
import { ownMessageBehind, SECTION_OPENING } from "../prompt/section.js";
import type { Digest, TurnId } from "../text/ids.js";
import { fixedTokens, instructionsAtHead, meaningOf } from "../text/message.js";
import {
  type ComposeInput,
  computedTokens,
  draftOf,
  draftWithin,
  type PromptDraft,
  type ReadRequest,
  readRequest,
  selectBlocks,
} from "./draft.js";
import type { ScopeState } from "./scope-state.js";

/** An epoch whose first prompt has less than this share of its window's tokens says little of what another one would cost. */
const LIKE_A_WINDOW = 0.75;

/** An epoch that begins with a whole history may have this share of the limit; one that begins with a part of it gets that share. */
const ROOMY = 0.75;
const SHORT = 0.5;

/** The next prompt of a window's epoch, or the first of another. */
export function draftContinued(
  state: ScopeState,
  input: ComposeInput,
  most: number,
  window: WindowTerms & { readonly kind: "continued" },
): PromptDraft {
  const { ratio = 1, isByCost = false } = input.historyTerms ?? {};
  const draft = draftOf(state, { ...input, messages: window.messages });
  // After messages that memprefix left out, the window is the longer one.
  const exact = window.leftOut > 0 ? Number.POSITIVE_INFINITY : exactTokens(input, draft);
  const share = isByCost ? input.cache.shareTokens : Number.POSITIVE_INFINITY;
  const bounds = { ratio, max: most, share, engine: isByCost ? input.engine : null };
  const endBehind = (prompts: readonly PromptTokens[]) => endOfEpoch(prompts, tokensOf(draft), exact, bounds);
  const began = endBehind(window.prompts);
  const another = began === null ? null : draftEpoch(state, input, most, began);
  const others = (window.prompts[0]?.total ?? 0) < LIKE_A_WINDOW * exact ? [] : window.prompts.slice(1);
  // What the epoch began with says less of what another would than its draft does.
  if (another !== null && (began !== "cost" || endBehind([tokensOf(another), ...others]) !== null)) return another;
  const epoch = { began: null, prompts: window.prompts.length + 1, leftOut: window.leftOut, behind: null };
  return { ...draft, epoch, added: window.added };
}

function tokensOf(draft: PromptDraft): PromptTokens {
  return { total: draft.totalTokens, computed: computedTokens(draft) };
}

/**
 * The first prompt of an epoch: the request's messages or, where they are too long, the newest of them. A client's window is cut only where
 * it does not fit; of a whole history so much is left out that the epoch has room to grow.
 */
export function draftEpoch(state: ScopeState, input: ComposeInput, most: number, began: EpochReason): PromptDraft {
  const { mayCut = false, ratio = 1, window = null } = input.historyTerms ?? {};
  const epoch = { began, prompts: 1, leftOut: 0, behind: null };
  if (!mayCut) {
    const draft = draftExact(state, input);
    return { ...(draft.totalTokens <= most ? draft : draftWithin(state, input, most, false)), epoch };
  }
  // What is longer than its share is gone before the next prompt, which then continues nothing.
  if (began === "share" && window?.kind === "continued" && window.leftOut === 0) {
    const draft = draftExact(state, input);
    if (draft.totalTokens > input.cache.shareTokens && draft.totalTokens <= most) return { ...draft, epoch };
  }
  // What is too long in any case is not drafted whole.
  const near = newestMessages(input, most);
  const draft = draftHeaded(state, near.input, ratio, most);
  const isWhole = window === null || (window.kind === "continued" && window.leftOut > 0);
  const fits = near.leftOut === 0 && draft.totalTokens <= most * (isWhole ? ROOMY : 1);
  if (fits) return { ...draft, epoch };
  const around = draft.replay.headTokens + retrievedTokens(draft.selection);
  const { input: shorter, ...cut } = newestMessages(input, most * SHORT - around);
  const headed = cut.leftOut === 0 ? draft : draftHeaded(state, shorter, ratio, most);
  const short = headed.totalTokens <= most ? headed : draftWithin(state, shorter, most, false);
  return { ...short, epoch: { ...epoch, ...cut }, added: Math.max(0, short.added - cut.leftOut) };
}

/** A request with its newest messages that come to at most so many tokens, and what that leaves out. */
function newestMessages(input: ComposeInput, tokens: number) {
  const { countTokens, dedupe } = input;
  // What is left out may be what references refer to.
  const messages = dedupe === "spans" ? withoutSpanReferences(input.messages) : input.messages;
  const first = instructionsAtHead(messages);
  const said = messages.slice(first);
  const kept = newestWithin(said, tokens, countTokens);
  const leftOut = said.length - kept.length;
  const last = input.messages[first + leftOut - 1];
  const newest = [...messages.slice(0, first), ...kept];
  return {
    input: leftOut === 0 ? input : { ...input, messages: dedupe === "spans" ? withSpanReferences(newest) : newest },
    leftOut,
    behind: last === undefined ? null : meaningOf(last),
  };
}

/**
 * With its memories in front, and of others, for the epochs to come, as much as the ratio lets the prompts grow; none where the limit leaves
 * no room to grow.
 */
function draftHeaded(state: ScopeState, input: ComposeInput, ratio: number, most: number): PromptDraft {
  const headed = draftOf(state, input, beginEpoch(state, input, ratio - 1));
  const isLong = headed.totalTokens > most * SHORT && (headed.head?.selection.ordering.carried.size ?? 0) > 0;
  return isLong ? draftOf(state, input, beginEpoch(state, input, 0)) : headed;
}

/**
 * A window's own messages, which no later prompt continues: with its memories in front of them where others may be carried, or else where
 * that costs less. With few memories the frame of a second section costs more than what is found cached.
 */
function draftExact(state: ScopeState, input: ComposeInput): PromptDraft {
  const law = smooth(input.engine);
  const costOf = (draft: PromptDraft) => promptCost(law, draft.totalTokens, draft.totalTokens - computedTokens(draft));
  const inFront = draftOf(state, input, beginEpoch(state, input, null));
  if (input.memoryBudgetTokens !== null || input.memoryBudgetRatio !== null) return inFront;
  const inQuestion = draftOf(state, input, readRequest(state, input, false));
  return costOf(inFront) <= costOf(inQuestion) ? inFront : inQuestion;
}

/** Tokens of the prompt of the request's own messages and memories, without annotations. */
function exactTokens({ messages, countTokens }: ComposeInput, { selection }: PromptDraft): number {
  return messagesTokens(messages, countTokens) + retrievedTokens(selection);
}

function retrievedTokens({ resolution }: PromptDraft["selection"]): number {
  return resolution.blocks.reduce((sum, { tokens }) => sum + tokens, 0);
}

/**
 * Reads the request of an epoch's first prompt, and puts its memories in front of its messages, where it has several and its memories are kept.
 * Policies of memprefix's own carry other blocks there within the allowance.
 *
 * @param carried maximum tokens of blocks that were not retrieved, for the epochs to come, as a share of those that were; null: only what the
 * request's own budget allows
 */
function beginEpoch(state: ScopeState, input: ComposeInput, carried: number | null): ReadRequest {
  const read = readRequest(state, input, false);
  const { countTokens, conversation, retention } = input;
  const { head, history } = read.past;
  const { rest } = history;
  // In front of a single message is where its memories stand anyway, and what nothing keeps is not found again.
  if (conversation === null || retention === "ephemeral" || rest.messages.length === 1) return read;
  const { register, index } = state;
  const resolution = withoutRepeats(
    register,
    read.retrieved,
    NOTHING_STANDING,
    new Map(),
    input.messages,
    input.dedupe,
  );
  const isWithFirst = rest.messages[0]?.role === "user";
  const count = isWithFirst ? 1 : 0;
  const placement = isWithFirst ? "in-question" : ownMessageBehind(rest.messages);
  const prompt = new Prompt();
  prompt.push(head);
  const isLabelled = input.annotations === "paper";
  const anchor = prompt.anchorFor(placement, true, isLabelled);
  const retrieved = resolution.blocks.reduce((sum, { tokens }) => sum + tokens, 0);
  const policy = input.policy.name === "prefix-exact" ? carryOver : input.policy;
  const limit = input.memoryBudgetTokens ?? Number.POSITIVE_INFINITY;
  const own =
    carried === null ? {} : { policy, memoryBudgetTokens: Math.min(limit, Math.floor((1 + carried) * retrieved)) };
  const selection = selectBlocks(
    state,
    resolution,
    { ...input, ...own },
    {
      anchor,
      isInConversation: false,
      standing: NOTHING_STANDING,
      superseded: new Map(),
      before: messagesTokens(head.messages, countTokens) + fixedTokens(SECTION_OPENING, countTokens),
      after: messagesTokens(rest.messages, countTokens),
      room: null,
    },
  );
  const { labels } = selection.ordering;
  const form = isLabelled ? { isLabelled } : {};
  const injection = { blocks: labels.map((label) => ({ label, replaces: [], ...form })), annotations: [] };
  const first = { messages: rest.messages.slice(0, count), digests: rest.digests.slice(0, count) };
  const turn: RecalledTurn = {
    ...first,
    turn: headTurn({
      conversationId: conversation.id,
      given: first.digests,
      meant: rest.meant.slice(0, count),
      placement,
      injection,
    }),
    placement,
    isRestated: true,
  };
  const after = {
    messages: rest.messages.slice(count),
    digests: rest.digests.slice(count),
    meant: rest.meant.slice(count),
  };
  return {
    ...read,
    past: { ...read.past, history: { ...history, turns: [turn], rest: after } },
    head: {
      injection,
      selection,
      cachedBlocks: index.hasAnchor(anchor) ? index.heldBlocks(anchor, labels) : 0,
      tokens: injectionTokens(injection, placement, register, countTokens),
    },
  };
}

/** A turn that was never sent, and so has no digests yet: it is stored as a restated one is. */
function headTurn(of: Pick<Turn, "conversationId" | "given" | "meant" | "placement" | "injection">): Turn {
  const unsent = "" as Digest;
  return {
    ...of,
    id: 0 as TurnId,
    parent: null,
    retention: "keep",
    ...DROPS_NOTHING,
    requested: [],
    head: unsent,
    prompt: unsent,
    anchor: unsent,
    promptTokens: 0,
    computedTokens: 0,
    epoch: 0 as TurnId,
    behind: null,
  };
}
