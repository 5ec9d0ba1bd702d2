import type { AnnotationSettings } from "./annotations.js";
import type { BlockRegister, Resolution } from "./block-register.js";
import { chooseRetention } from "./choose-retention.js";
import { Conversation, recallHistory, type Standing, standingOf } from "./conversation.js";
import { digestOf } from "./digest.js";
import { type EngineModel, sparedBy } from "./engine-model.js";
import { groupBy } from "./group-by.js";
import type { ConversationId, Digest, Label, MemoryId, NodeId } from "./ids.js";
import { injectionTokens, planInjection } from "./injecting.js";
import type { Injection } from "./injection.js";
import { type ChatMessage, isInstruction, messageDigest } from "./message.js";
import type { CarryAllowance, Ordering, OrderingPolicy, OrderingRequest } from "./ordering.js";
import type { PlacedMemory, Placement, Plan } from "./plan.js";
import { messagesTokens } from "./prompt.js";
import { renderAnnotation, renderSection, SECTION_OPENING } from "./rendering.js";
import { beginningTokens, type PromptSection, replayTurns, splitAtAnchor } from "./replay.js";
import type { ResidencyModel, SectionTokens } from "./residency.js";
import { type RetentionName, retained } from "./retention.js";
import type { RetrievedMemory } from "./retrieved-memory.js";
import type { ScopeState } from "./scope-state.js";
import { serve } from "./serving.js";
import type { StoredBlock } from "./stored-block.js";
import type { TokenCounter } from "./token-counter.js";
import type { Turn } from "./turn.js";
import { historyWarnings, resolutionWarnings, type Warning } from "./warning.js";

/** Every block begins with a bracket, which is a token of its own to tokenizers that there are. */
const LABEL_OPENING_TOKENS = 1;

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
  readonly annotations: AnnotationSettings;
  /** What later prompts of the conversation keep of what this one injects. */
  readonly retention: RetentionName;
  /** What prompts cost the engine that this one goes to. */
  readonly engine: EngineModel;
  readonly countTokens: TokenCounter;
  /** Whether memstem once sent a section with this digest to this scope. */
  readonly isOurs: (section: Digest) => boolean;
}

/** A composed prompt, and what has to be stored so that it can be continued and repeated. */
export interface Composition {
  readonly messages: readonly ChatMessage[];
  /** Every distinct memory asked for: this turn's in prompt order, then those given earlier, by rank. */
  readonly memories: readonly PlacedMemory[];
  /** This turn's annotation lines, as they stand in the prompt. */
  readonly annotations: readonly string[];
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
  readonly turn: Turn;
  /** The instructions at the head of the prompt. */
  readonly head: readonly ChatMessage[];
  /** The plain messages that this turn adds to its parent's. */
  readonly given: readonly ChatMessage[];
  /** Digests of the sections that this turn sent and that later ones replay, to know them when a client sends them back. */
  readonly sections: readonly Digest[];
  /** Node of the context index where the served sequence ends. */
  readonly leaf: NodeId;
  /** Tokens of `head`. */
  readonly headTokens: number;
}

/**
 * Composes one prompt and takes it into the scope's state: replay what earlier turns injected, give the blocks that are not in the
 * prompt yet, in the order that reuses most of what is cached, and refer to the rest. Deterministic: the same state and input give
 * the same bytes. Expects at least one message that is no instruction.
 */
export function compose(state: ScopeState, input: ComposeInput): Composition {
  const { register, index } = state;
  const { countTokens, policy, conversation, messages } = input;
  const head = messages.slice(0, instructionsAtHead(messages));
  const turns = conversation?.turns ?? new Conversation([]);
  const history = recallHistory(turns, messages.slice(head.length), input.isOurs);
  const { rest } = history;
  const final = rest.messages.at(-1);
  if (final === undefined) throw new Error("compose needs a message that is no instruction");
  input.residency.expire(index, input.now);
  const resolution = register.resolve(input.memories);
  const placement: Turn["placement"] = final.role === "user" ? "in-question" : "after-tool-result";
  const { answer, question } = splitAtAnchor(rest, placement);

  const replayed = (freshStart: boolean) =>
    replayTurns(
      turns,
      { messages: head, digests: head.map(messageDigest) },
      history,
      freshStart,
      index,
      register,
      countTokens,
    );
  const going = replayed(false);
  const choice =
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
  const replay = choice.freshStart ? replayed(true) : going;
  const standing = standingOf(replay.turns.map(({ injection }) => injection));
  const { prompt } = replay;
  prompt.push(answer);
  const anchor = prompt.digest;
  const tokensBefore = replay.tokens + messagesTokens(answer.messages, countTokens);

  const fresh = resolution.blocks.filter(({ label }) => !standing.given.has(label));
  const questionTokens = messagesTokens(question.messages, countTokens);
  const openingTokens = countTokens(SECTION_OPENING);
  const request: OrderingRequest = {
    anchor,
    retrieved: fresh,
    carrying: carryAllowance(register, fresh, standing, input, tokensBefore + openingTokens, questionTokens),
  };
  const ordering = policy.order(request, state);
  const injection = planInjection(register, {
    requested: resolution.blocks,
    standing,
    placed: ordering.labels,
    carried: ordering.carried,
    placement,
    settings: input.annotations,
  });
  const section = renderSection(injection, register.textOf);
  const kept =
    choice.retention === "keep" ? section : renderSection(retained(injection, choice.retention), register.textOf);
  prompt.pushTurn(question, placement, section);

  const totalTokens = tokensBefore + injectionTokens(injection, placement, register, countTokens) + questionTokens;
  const ownSection = { anchor, blocks: injection.blocks, before: tokensBefore, end: totalTokens, sentBy: null };
  const { leaf, cachedBlocks, cachedTokens } = serve(
    index,
    input.residency,
    [...replay.sections, ownSection].map((section) => sectionTokens(section, register, countTokens)),
    { sections: replay.cachedSections, end: replay.cachedEnd, tokens: replay.cachedTokens },
    state.tick(),
    input.now,
  );
  const expectedCachedTokens = Math.min(cachedTokens, totalTokens);
  const turnId = state.newTurnId();
  policy.learn?.(request, ordering, state, turnId);
  const asked = resolution.blocks.map(({ label }) => label);
  state.recent.take(asked, turnId);

  const turn: Turn = {
    id: turnId,
    conversationId: conversation?.id ?? null,
    parent: history.turns.at(-1)?.turn.id ?? null,
    given: rest.digests,
    placement,
    injection,
    ...choice,
    requested: conversation === null ? [] : asked,
    head: replay.head,
    prompt: prompt.digest,
    anchor,
    promptTokens: totalTokens,
  };
  turns.add(turn);
  return {
    messages: prompt.messages,
    memories: placeMemories(register, resolution, ordering, cachedBlocks, injection),
    annotations: injection.annotations.map(renderAnnotation),
    plan: {
      layout: conversation === null ? "single" : "conversation",
      policy: policy.name,
      expectedCachedTokens,
      uncachedTokens: totalTokens - expectedCachedTokens,
      totalTokens,
      searchPath: ordering.searchPath,
      orderChanged: ordering.labels
        .filter((label) => !ordering.carried.has(label))
        .some((label, rank) => fresh[rank]?.label !== label),
      stableMessages: replay.stableMessages,
      ...choice,
    },
    warnings: [...resolutionWarnings(resolution), ...historyWarnings(history)],
    turn,
    head,
    given: rest.messages,
    sections: [...new Set([section, kept])].filter((sent) => sent !== "").map(digestOf),
    leaf,
    headTokens: replay.headTokens,
  };
}

/** A section as residency models read it. */
export function sectionTokens(
  { anchor, blocks, before, end, sentBy }: PromptSection,
  register: BlockRegister,
  countTokens: TokenCounter,
): SectionTokens {
  const labels = blocks.map(({ label }) => label);
  const opening = countTokens(SECTION_OPENING);
  const opened = before + (countTokens.template?.beforeText ?? 0);
  return {
    anchor,
    labels,
    before: before + opening,
    behind: Math.max(0, end - before - opening - tokensOf(register, labels, labels.length)),
    end,
    sentBy,
    upTo: (count, goesOn) => {
      if (count === 0) return goesOn ? opened + opening + LABEL_OPENING_TOKENS : opened;
      const begun = beginningTokens(blocks.slice(0, count), register, countTokens);
      return opened + begun + (goesOn ? LABEL_OPENING_TOKENS : 0);
    },
  };
}

/** How many messages at the front are instructions. */
export function instructionsAtHead(messages: readonly ChatMessage[]): number {
  const first = messages.findIndex((message) => !isInstruction(message));
  return first < 0 ? messages.length : first;
}

/** What may stand in this turn beside the retrieved blocks; null for nothing. */
function carryAllowance(
  register: BlockRegister,
  fresh: readonly StoredBlock[],
  { given }: Standing,
  { memoryBudgetTokens: budget, engine }: ComposeInput,
  before: number,
  after: number,
): CarryAllowance | null {
  const retrieved = fresh.reduce((sum, { tokens }) => sum + tokens, 0);
  if (budget === null || fresh.length === 0 || budget <= retrieved) return null;
  return {
    tokens: budget - retrieved,
    knownTokens: register.currentTokens,
    spared: sparedBy(engine, { before, retrieved, after }),
    tokensOf: (label) => {
      const block = register.get(label);
      return block === undefined || block.supersededBy !== null || given.has(label) ? null : block.tokens;
    },
  };
}

/** Tokens of the first `count` blocks of a sequence. */
function tokensOf(register: BlockRegister, sequence: readonly Label[], count: number): number {
  return sequence.slice(0, count).reduce((sum, label) => sum + (register.get(label)?.tokens ?? 0), 0);
}

function placeMemories(
  register: BlockRegister,
  resolution: Resolution,
  ordering: Ordering,
  cachedBlocks: number,
  injection: Injection,
): PlacedMemory[] {
  const restored = injection.annotations.filter((annotation) => annotation.kind === "restored");
  const replaces = new Map([...injection.blocks, ...restored].map(({ label, replaces: old }) => [label, old]));
  const byLabel = groupBy(resolution.memories, ({ label }) => label);
  const placeAs = (
    { label, memoryId, rank }: Omit<PlacedMemory, "placement" | "replaces">,
    placement: Placement,
  ): PlacedMemory => ({
    label,
    memoryId,
    placement,
    rank,
    replaces: replaces.get(label) ?? [],
  });
  const inThisTurn = ordering.labels.flatMap((label, at) =>
    ordering.carried.has(label)
      ? [placeAs({ label, memoryId: register.memoryOf(label) as MemoryId, rank: null }, "carried_over")]
      : (byLabel.get(label) ?? []).map((memory) => placeAs(memory, at < cachedBlocks ? "cached_prefix" : "new")),
  );
  const placed = new Set(ordering.labels);
  const earlier = resolution.memories.filter(({ label }) => !placed.has(label));
  return [...inThisTurn, ...earlier.map((memory) => placeAs(memory, "earlier_turn"))];
}
