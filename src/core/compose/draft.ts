import type { Resolution } from "../blocks/block-register.js";
import type { RetrievedMemory } from "../blocks/retrieved-memory.js";
import type { StoredBlock } from "../blocks/stored-block.js";
import type { ResidencyModel } from "../context-index/residency.js";
import { chooseRetention } from "../conversation/choose-retention.js";
import {
  Conversation,
  type RecalledHistory,
  recallHistory,
  type Standing,
  standingOf,
} from "../conversation/conversation.js";
import { injectionTokens, planInjection, supersedesStanding } from "../conversation/injecting.js";
import { type Replay, replayTurns, splitAtAnchor } from "../conversation/replay.js";
import { type RetentionChoice, type RetentionName, retained } from "../conversation/retention.js";
import { type AroundBlocks, type EngineModel, sparedBy } from "../cost/engine-model.js";
import { orderAfter } from "../ordering/order-after.js";
import type { CarryAllowance, Ordering, OrderingPolicy, OrderingRequest } from "../ordering/ordering.js";
import type { AnnotationSettings } from "../prompt/annotations.js";
import type { Injection } from "../prompt/injection.js";
import { messagesTokens, type Prompt, tokensBeforeSection } from "../prompt/prompt.js";
import { renderSection, SECTION_OPENING } from "../prompt/rendering.js";
import { ownMessageBehind, type SectionPlacement, type ToolMemories } from "../prompt/section-placement.js";
import type { ConversationId, Digest, Label } from "../text/ids.js";
import { type ChatMessage, isInstruction, messageDigest } from "../text/message.js";
import type { TokenCounter } from "../text/token-counter.js";
import type { Depth } from "./depth.js";
import type { ScopeState } from "./scope-state.js";

/** One request, checked and with its memories at hand. */
export interface ComposeInput {
  /** The conversation and what is remembered of it; null for the `single` layout. */
  readonly conversation: { readonly id: ConversationId; readonly turns: Conversation } | null;
  /** Instructions, history and, last, the new question or tool result. Plain: no injected text, or text that `isOurs` knows. */
  readonly messages: readonly ChatMessage[];
  /** In relevance order, best first. */
  readonly memories: readonly RetrievedMemory[];
  readonly policy: OrderingPolicy;
  /** What the engine should have let go of by `now`. */
  readonly residency: ResidencyModel;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Tokens that this turn's blocks may come to, carried ones included; null: what was retrieved. A policy that carries reads it. */
  readonly memoryBudgetTokens: number | null;
  /** The same over all of the scope's prompts that say one, as a multiple of what was retrieved; see {@link MemoryBank}. Null: none. */
  readonly memoryBudgetRatio: number | null;
  readonly annotations: AnnotationSettings;
  /** What later prompts of the conversation keep of what this one injects. */
  readonly retention: RetentionName;
  /** What prompts cost the engine that this one goes to. */
  readonly engine: EngineModel;
  /** How much of what was retrieved the turn gives. Default: all of it. */
  readonly depth?: Depth | undefined;
  readonly countTokens: TokenCounter;
  /** Where memories stand behind a tool's result. Default: as earlier turns of the conversation had it, at first a message of their own. */
  readonly toolMemories?: ToolMemories | null | undefined;
  /** Tokens that the prompt may have, by our own count: with more, it starts afresh with what fits. Default: as many as it has. */
  readonly maxPromptTokens?: number | null | undefined;
  /** Whether memstem once sent a section with this digest to this scope. */
  readonly isOurs: (section: Digest) => boolean;
}

/** A prompt as it would be sent, before it is served. */
export interface Draft {
  readonly prompt: Prompt;
  /** The instructions at its head. */
  readonly head: readonly ChatMessage[];
  readonly turns: Conversation;
  readonly history: RecalledHistory;
  readonly placement: SectionPlacement;
  readonly replay: Replay;
  readonly choice: RetentionChoice;
  readonly resolution: Resolution;
  /** Distinct blocks that were retrieved and that no earlier turn of this prompt gave, by relevance … */
  readonly fresh: readonly StoredBlock[];
  /** … the tokens of their lines … */
  readonly freshTokens: number;
  /** … how many of them have to be given, because this prompt holds what they take the place of … */
  readonly due: number;
  /** … and those that this turn does not give … */
  readonly heldBack: ReadonlySet<Label>;
  /** … because the prompt may have no more tokens. */
  readonly isCramped: boolean;
  readonly request: OrderingRequest;
  readonly ordering: Ordering;
  readonly injection: Injection;
  /** The section as this prompt has it, and as later ones replay it. */
  readonly section: string;
  readonly kept: string;
  /** Digest of what stands before the blocks. */
  readonly anchor: Digest;
  /** Tokens of what stands before the section. */
  readonly tokensBefore: number;
  readonly totalTokens: number;
}

/**
 * Builds a prompt and serves nothing: replays what earlier turns injected, gives blocks that are not in the prompt yet, in the order that
 * reuses most of what is cached, and refers to the rest. What was retrieved has its labels from then on, so that drafts of one request at
 * different depths give the same blocks the same bytes. Expects at least one message that is no instruction.
 */
export function draftPrompt(state: ScopeState, input: ComposeInput): Draft {
  const { maxPromptTokens: most } = input;
  let draft = draftWith(state, input, null);
  if (most == null || draft.totalTokens <= most) return draft;
  // Annotations and tags are known only with the blocks: what they come to is taken off what blocks may have.
  for (let room = most; ; room -= draft.totalTokens - most) {
    draft = draftWith(state, input, room);
    if (draft.totalTokens <= most || draft.ordering.labels.length === 0) return draft;
  }
}

/** @param room tokens that a prompt with nothing replayed may have, what its section has beside its blocks left out; null: no matter */
function draftWith(state: ScopeState, input: ComposeInput, room: number | null): Draft {
  const { register, index } = state;
  const { countTokens, policy, conversation, messages } = input;
  const head = messages.slice(0, instructionsAtHead(messages));
  const turns = conversation?.turns ?? new Conversation([]);
  const history = recallHistory(turns, messages.slice(head.length), input.isOurs, input.toolMemories ?? null);
  const { rest } = history;
  const final = rest.messages.at(-1);
  if (final === undefined) throw new Error("compose needs a message that is no instruction");
  input.residency.expire(index, input.now);
  const resolution = register.resolve(input.memories);
  const placement = placementFor(final, history, input.toolMemories ?? null);
  const { answer, question } = splitAtAnchor(rest, placement);

  const instructions = { messages: head, digests: head.map(messageDigest) };
  const replayed = (freshStart: boolean) => replayTurns(state, turns, instructions, history, freshStart, countTokens);
  const going = replayed(false);
  const chosen =
    input.retention === "auto"
      ? chooseRetention(
          {
            ...input,
            replay: going,
            seen: turns.seenOn(history.turns.map(({ turn }) => turn)),
            requested: resolution.blocks,
            answer,
            question,
            placement,
          },
          register,
        )
      : { retention: input.retention, freshStart: false };
  const choice = room === null ? chosen : { ...chosen, freshStart: history.turns.length > 0 };
  const replay = choice.freshStart ? replayed(true) : going;
  const standing = standingOf(replay.turns.map(({ injection }) => injection));
  const { prompt } = replay;
  prompt.push(answer);
  const before = (hasSection: boolean) =>
    replay.tokens + tokensBeforeSection(answer.messages, placement, hasSection, countTokens);

  const fresh = resolution.blocks.filter(({ label }) => !standing.given.has(label));
  const superseding = supersedesStanding(register, standing);
  const freshTokens = fresh.reduce((sum, { tokens }) => sum + tokens, 0);
  const questionTokens = messagesTokens(question.messages, countTokens);
  const wanted = firstGiven(fresh, superseding, input.depth?.blocks ?? fresh.length);
  const given = room === null ? wanted : thatFit(wanted, room - before(true) - questionTokens);
  const openingTokens = countTokens(SECTION_OPENING);
  const request: OrderingRequest = {
    anchor: prompt.anchorFor(placement),
    retrieved: given,
    // For all of them, so that steps which give more stay within the budget.
    carrying:
      room !== null
        ? null
        : carryAllowance(state, standing, input, {
            before: before(true) + openingTokens,
            retrieved: freshTokens,
            after: questionTokens,
          }),
  };
  const extended = input.depth?.after ?? null;
  const ordering = extended === null ? policy.order(request, state) : orderAfter(extended, policy, request, state);
  const placed = new Set(ordering.labels);
  const heldBack = new Set(fresh.map(({ label }) => label).filter((label) => !placed.has(label)));
  const injection = planInjection(register, {
    requested: resolution.blocks.filter(({ label }) => !heldBack.has(label)),
    standing,
    placed: ordering.labels,
    carried: ordering.carried,
    placement,
    settings: input.annotations,
  });
  const section = renderSection(injection, register.textOf);
  const kept =
    choice.retention === "keep" ? section : renderSection(retained(injection, choice.retention), register.textOf);
  const anchor = prompt.anchorFor(placement, section !== "");
  const tokensBefore = before(section !== "");
  prompt.pushTurn(question, placement, section);

  const totalTokens = tokensBefore + injectionTokens(injection, placement, register, countTokens) + questionTokens;
  return {
    prompt,
    head,
    turns,
    history,
    placement,
    replay,
    choice,
    resolution,
    fresh,
    freshTokens,
    due: fresh.filter(({ label }) => superseding.has(label)).length,
    heldBack,
    isCramped: room !== null,
    request,
    ordering,
    injection,
    section,
    kept,
    anchor,
    tokensBefore,
    totalTokens,
  };
}

/** How many messages at the front are instructions. */
export function instructionsAtHead(messages: readonly ChatMessage[]): number {
  const first = messages.findIndex((message) => !isInstruction(message));
  return first < 0 ? messages.length : first;
}

/** The most relevant blocks; those whose older text stands in the prompt come first, as it would be taken for the current one. */
function firstGiven(fresh: readonly StoredBlock[], due: ReadonlySet<Label>, count: number): readonly StoredBlock[] {
  if (count >= fresh.length) return fresh;
  const others = fresh.filter(({ label }) => !due.has(label));
  const left = new Set(others.slice(Math.max(0, count - (fresh.length - others.length))).map(({ label }) => label));
  return fresh.filter(({ label }) => !left.has(label));
}

/** The most relevant blocks that come to no more than these tokens; what is too long is passed over for what is not. */
function thatFit(blocks: readonly StoredBlock[], tokens: number): readonly StoredBlock[] {
  let left = tokens;
  return blocks.filter((block) => {
    if (block.tokens > left) return false;
    left -= block.tokens;
    return true;
  });
}

/** Where the section of a turn stands that ends with this message. */
function placementFor(
  { role }: ChatMessage,
  { turns, rest }: RecalledHistory,
  toolMemories: ToolMemories | null,
): SectionPlacement {
  if (role === "user") return "in-question";
  const earlier = turns.findLast(({ placement }) => placement !== "in-question")?.placement;
  if (toolMemories === "in_result" || (toolMemories === null && earlier === "in-tool-result")) return "in-tool-result";
  return ownMessageBehind([...turns.flatMap(({ messages }) => messages), ...rest.messages]);
}

/** What may stand in this turn beside the retrieved blocks; null for nothing. */
function carryAllowance(
  { register, bank }: ScopeState,
  { given }: Standing,
  { memoryBudgetTokens: budget, memoryBudgetRatio: ratio, engine }: ComposeInput,
  around: AroundBlocks,
): CarryAllowance | null {
  const { retrieved } = around;
  if (retrieved === 0 || (budget === null && ratio === null)) return null;
  const own = budget === null ? null : budget - retrieved;
  const banked = ratio === null ? null : bank.allowanceFor(ratio, retrieved);
  const tokens = Math.min(own ?? Number.POSITIVE_INFINITY, banked?.tokens ?? Number.POSITIVE_INFINITY);
  if (tokens <= 0) return null;
  return {
    tokens,
    ownTokens: own,
    bankedTokens: banked?.banked ?? null,
    knownTokens: register.currentTokens,
    spared: sparedBy(engine, around),
    tokensOf: (label) => {
      const block = register.get(label);
      return block === undefined || block.supersededBy !== null || given.has(label) ? null : block.tokens;
    },
  };
}
