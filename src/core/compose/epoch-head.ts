import type { Resolution } from "../blocks/context-block.js";
import { DROPS_NOTHING, NOTHING_STANDING, type Turn } from "../conversation/conversation.js";
import type { MeantMessages, RecalledHistory } from "../conversation/history.js";
import { injectionTokens } from "../conversation/injecting.js";
import { withoutRepeats } from "../conversation/repeats.js";
import { carryOver } from "../ordering/carry-over.js";
import { messagesTokens, Prompt } from "../prompt/prompt.js";
import { type Injection, ownMessageBehind, SECTION_OPENING, type SectionPlacement } from "../prompt/section.js";
import type { ConversationId, Digest, TurnId } from "../text/ids.js";
import { fixedTokens } from "../text/message.js";
import type { ComposeInput } from "./compose-input.js";
import type { ScopeState } from "./scope-state.js";
import { type Selection, selectBlocks, tokensIn } from "./selection.js";

/** The memories of an epoch's first prompt, in front of its messages. There the next epoch finds them cached, in the order that reuses most. */
export interface EpochHead {
  /** The history with a turn for them: in the first user message, else in a message of their own. */
  readonly history: RecalledHistory;
  readonly injection: Injection;
  readonly selection: Selection;
  readonly cachedBlocks: number;
  readonly tokens: number;
}

/**
 * Puts an epoch's memories in front; null if they are there anyway, or if nothing keeps them for later prompts.
 *
 * @param share maximum carried tokens, as a share of the retrieved ones; `own`: the request's budget
 */
export function epochHead(
  state: ScopeState,
  input: ComposeInput,
  history: RecalledHistory,
  retrieved: Resolution,
  share: number | "own",
): EpochHead | null {
  const { countTokens, conversation, retention, dedupe } = input;
  const { head, rest, messages } = history;
  if (conversation === null || retention === "ephemeral" || rest.messages.length === 1) return null;
  const { register, index } = state;
  const resolution = withoutRepeats(register, retrieved, NOTHING_STANDING, new Map(), messages, dedupe);
  const count = rest.messages[0]?.role === "user" ? 1 : 0;
  const placement = count === 1 ? "in-question" : ownMessageBehind(rest.messages);
  const prompt = new Prompt(input.root);
  prompt.push(head);
  const isLabelled = input.annotations === "paper";
  const anchor = prompt.anchorFor(placement, true, isLabelled);
  const selection = selectBlocks(state, resolution, share === "own" ? input : withBudget(input, resolution, share), {
    anchor,
    isInConversation: false,
    standing: NOTHING_STANDING,
    superseded: new Map(),
    before: messagesTokens(head.messages, countTokens) + fixedTokens(SECTION_OPENING, countTokens),
    after: messagesTokens(rest.messages, countTokens),
    room: null,
  });
  const { labels } = selection.ordering;
  const form = isLabelled ? { isLabelled } : {};
  const injection = { blocks: labels.map((label) => ({ label, ...form })), annotations: [] };
  const first = partOf(rest, 0, count);
  const turn = unsentTurn(conversation.id, first, placement, injection);
  return {
    history: {
      ...history,
      turns: [{ turn, messages: first.messages, digests: first.digests, placement, isRestated: true }],
      rest: partOf(rest, count),
    },
    injection,
    selection,
    cachedBlocks: index.hasAnchor(anchor) ? index.heldBlocks(anchor, labels) : 0,
    tokens: injectionTokens(injection, placement, register, countTokens),
  };
}

function withBudget(input: ComposeInput, { blocks }: Resolution, share: number): ComposeInput {
  const most = input.memoryBudgetTokens ?? Number.POSITIVE_INFINITY;
  return {
    ...input,
    policy: input.policy.name === "prefix-exact" ? carryOver : input.policy,
    memoryBudgetTokens: Math.min(most, Math.floor((1 + share) * tokensIn(blocks))),
  };
}

function partOf({ messages, digests, meant }: MeantMessages, from: number, to?: number): MeantMessages {
  return { messages: messages.slice(from, to), digests: digests.slice(from, to), meant: meant.slice(from, to) };
}

/** A turn without digests, because it was never sent. Stored like a restated one. */
function unsentTurn(
  conversationId: ConversationId,
  { digests, meant }: MeantMessages,
  placement: SectionPlacement,
  injection: Injection,
): Turn {
  const unsent = "" as Digest;
  return {
    id: 0 as TurnId,
    conversationId,
    parent: null,
    given: digests,
    meant,
    placement,
    injection,
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
