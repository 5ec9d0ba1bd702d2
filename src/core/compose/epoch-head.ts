import type { Resolution } from "../blocks/context-block.js";
import { NOTHING_STANDING, type RecalledHistory, type RecalledTurn } from "../conversation/conversation.js";
import { injectionTokens } from "../conversation/injecting.js";
import type { RetentionName, Turn } from "../conversation/turn.js";
import { carryOver } from "../ordering/carry-over.js";
import { type Injection, ownMessageBehind } from "../prompt/injection.js";
import { messagesTokens, Prompt } from "../prompt/prompt.js";
import { SECTION_OPENING } from "../prompt/rendering.js";
import type { Digest, TurnId } from "../text/ids.js";
import type { TokenCounter } from "../text/token-counter.js";
import type { Past, PastInput } from "./past.js";
import type { ScopeState } from "./scope-state.js";
import { type Selection, type SelectionInput, selectBlocks } from "./selection.js";

/**
 * The memories of an epoch's first prompt, in front of the messages that it begins with, where the next epoch finds them cached: after the
 * same instructions, in the order that reuses most of the fronts before it, as memories of single prompts are.
 */
export interface EpochHead {
  /** Of the turn that puts them there: with the first message if a user said it, else in a message of their own. */
  readonly injection: Injection;
  readonly selection: Selection;
  /** How many of its blocks should be cached. */
  readonly cachedBlocks: number;
  /** Tokens of its section. */
  readonly tokens: number;
}

/** An epoch's first prompt, apart from its newest turn. */
export interface BegunEpoch {
  readonly history: RecalledHistory;
  readonly head: EpochHead;
}

/** How the head of an epoch is filled. */
export interface EpochHeadInput extends SelectionInput, Pick<PastInput, "conversation"> {
  readonly countTokens: TokenCounter;
  readonly retention: RetentionName;
  /**
   * Maximum tokens of blocks that were not retrieved, for the epochs to come, as a share of those that were; null: only what the request's
   * own budget allows.
   */
  readonly carried: number | null;
}

/**
 * Puts a prompt's memories in front of its messages; null where it has but one, or its memories are not kept. Policies of memstem's own
 * carry other blocks there within the allowance. Pure.
 */
export function beginEpoch(
  state: ScopeState,
  input: EpochHeadInput,
  { head, history: { rest, ...history } }: Past,
  resolution: Resolution,
): BegunEpoch | null {
  const { countTokens, carried, conversation, retention } = input;
  // In front of a single message is where its memories stand anyway, and what nothing keeps is not found again.
  if (conversation === null || retention === "ephemeral" || rest.messages.length === 1) return null;
  const isWithFirst = rest.messages[0]?.role === "user";
  const count = isWithFirst ? 1 : 0;
  const placement = isWithFirst ? "in-question" : ownMessageBehind(rest.messages);
  const prompt = new Prompt();
  prompt.push(head);
  const anchor = prompt.anchorFor(placement);
  const retrieved = resolution.blocks.reduce((sum, { tokens }) => sum + tokens, 0);
  const own =
    carried === null
      ? {}
      : { policy: carryingPolicy(input), memoryBudgetTokens: Math.floor((1 + carried) * retrieved) };
  const selection = selectBlocks(
    state,
    resolution,
    { ...input, ...own },
    {
      anchor,
      isInConversation: false,
      standing: NOTHING_STANDING,
      superseded: new Map(),
      before: messagesTokens(head.messages, countTokens) + countTokens(SECTION_OPENING),
      after: messagesTokens(rest.messages, countTokens),
      room: null,
    },
  );
  const { labels } = selection.ordering;
  const injection = { blocks: labels.map((label) => ({ label, replaces: [] })), annotations: [] };
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
  return {
    history: {
      ...history,
      turns: [turn],
      rest: {
        messages: rest.messages.slice(count),
        digests: rest.digests.slice(count),
        meant: rest.meant.slice(count),
      },
    },
    head: {
      injection,
      selection,
      cachedBlocks: state.index.hasAnchor(anchor) ? state.index.heldBlocks(anchor, labels) : 0,
      tokens: injectionTokens(injection, placement, state.register, countTokens),
    },
  };
}

function carryingPolicy({ policy }: SelectionInput): SelectionInput["policy"] {
  return policy.name === "prefix-exact" ? carryOver : policy;
}

/** A turn that was never sent, and so has no digests yet: it is stored as a restated one is. */
function headTurn(of: Pick<Turn, "conversationId" | "given" | "meant" | "placement" | "injection">): Turn {
  const unsent = "" as Digest;
  return {
    ...of,
    id: 0 as TurnId,
    parent: null,
    retention: "keep",
    freshStart: false,
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
