import type { EndedMemory, RenderedMemory, Resolution, StoredBlock } from "../blocks/context-block.js";
import type { ResidencyModel } from "../cache/residency.js";
import { chooseRetention, type RetainableTurn } from "../conversation/auto-retention.js";
import {
  Conversation,
  DROPS_NOTHING,
  type Dropping,
  type RecalledHistory,
  type RetentionChoice,
  type RetentionName,
  recallHistory,
  retained,
  type Standing,
  standingInjections,
  standingOf,
} from "../conversation/conversation.js";
import type { EpochReason, HistoryTerms } from "../conversation/epoch.js";
import {
  type Annotations,
  injectionTokens,
  planInjection,
  type SupersededLabels,
  sectionsHaveLabels,
  supersededIn,
  withCorrections,
} from "../conversation/injecting.js";
import { asGiven, type DedupeName, isExchange, withoutRepeats, withoutReplaced } from "../conversation/repeats.js";
import { type HeldHead, type Replay, replayTurns, splitAtAnchor } from "../conversation/replay.js";
import { type AroundBlocks, type EngineModel, sparedBy } from "../cost/engine-model.js";
import { bankAllowance } from "../ordering/carry-over.js";
import { type CarryAllowance, type Ordering, type OrderingRequest, orderAfter } from "../ordering/ordering.js";
import { type DigestedMessages, messagesTokens, type Prompt, tokensBeforeSection } from "../prompt/prompt.js";
import {
  hasLabels,
  type Injection,
  ownMessageBehind,
  renderSection,
  SECTION_OPENING,
  type SectionPlacement,
  stripSection,
} from "../prompt/section.js";
import type { ScopePolicy } from "../published/published-knowledge.js";
import { type ConversationId, type Digest, digestOf, type Label, type MemoryId } from "../text/ids.js";
import {
  type ChatMessage,
  fixedTokens,
  instructionsAtHead,
  messageDigest,
  type TokenCounter,
} from "../text/message.js";
import type { Depth } from "./depth.js";
import type { ScopeState } from "./scope-state.js";

/** The part of a request that says what it continues. */
export interface PastInput {
  /** The conversation with its stored turns; null for the `single` layout. */
  readonly conversation: { readonly id: ConversationId; readonly turns: Conversation } | null;
  /**
   * Instructions, history and, last, the new question or tool result. Plain: without injected sections, or with sections that `isOurs`
   * recognises.
   */
  readonly messages: readonly ChatMessage[];
  /** Whether memories go into tool results. Default: as in the conversation's earlier turns, else in a message of their own. */
  readonly inResult?: boolean | undefined;
  /** Whether memprefix sent a section with this digest to this scope. */
  readonly isOurs: (section: Digest) => boolean;
  /** What {@link recallPast} gave for this very input; null: not asked yet. Not used once `messages` are others. */
  readonly recalled?: Past | null | undefined;
}

/** Everything before a new turn: the instructions, the turns recognised in the history, and the client's new messages. */
export interface Past {
  /** The instructions at the head of the prompt. */
  readonly head: DigestedMessages;
  readonly turns: Conversation;
  readonly history: RecalledHistory;
  /** The request's messages. */
  readonly messages: readonly ChatMessage[];
}

/** Digests of everything in some messages that `isOurs` may be asked about: whatever has a section's form. */
export function possibleSections(messages: readonly ChatMessage[]): readonly Digest[] {
  const found = new Set<Digest>();
  for (const message of messages) {
    stripSection(message, (section) => {
      found.add(digestOf(section));
      // What is not ours is looked at in every way that a section can stand in a message.
      return false;
    });
  }
  return [...found];
}

/**
 * Recognises the conversation that a request continues. Pure: does not change `conversation`.
 *
 * @param continues false: the request begins afresh, whatever it could continue
 */
export function recallPast(input: PastInput, continues = true): Past {
  const { conversation, messages, isOurs, inResult = false, recalled = null } = input;
  if (continues && recalled?.messages === messages) return recalled;
  const head = messages.slice(0, instructionsAtHead(messages));
  const turns = conversation?.turns ?? new Conversation([]);
  const continued = continues ? turns : new Conversation([]);
  const history = recallHistory(continued, messages.slice(head.length), isOurs, inResult);
  return { head: { messages: head, digests: head.map(messageDigest) }, turns, history, messages };
}

/**
 * The memories of a source whose current text earlier turns of a conversation gave, the newest last: what the conversation takes for true
 * of what searches found. Pure.
 */
export function standingMemories({ register }: Pick<ScopeState, "register">, input: PastInput): readonly MemoryId[] {
  const turns = recallPast(input).history.turns.map(({ turn }) => turn);
  const { given, replaced } = standingOf(standingInjections(turns, DROPS_NOTHING));
  const labels = [...given].filter((label) => !replaced.has(label)).sort((a, b) => a - b);
  return [...new Set(labels.flatMap((label) => register.foundWith(label)))];
}

/** The part of a request that decides which blocks its turn injects. */
export interface SelectionInput {
  readonly policy: ScopePolicy;
  /** Maximum tokens of this turn's blocks, carried ones included; null: the retrieved blocks only. Used by policies that carry. */
  readonly memoryBudgetTokens: number | null;
  /** The same for all of the scope's prompts with a ratio, as a multiple of the retrieved tokens; see {@link bankAllowance}. Null: none. */
  readonly memoryBudgetRatio: number | null;
  /** The cost model of the engine that the prompt goes to. */
  readonly engine: EngineModel;
  /** How many of the retrieved blocks to inject. Default: all. */
  readonly depth?: Depth | undefined;
  /** Whether blocks that were not retrieved may be carried: not where the request is about some of the memories alone. Default: yes. */
  readonly mayCarry?: boolean | undefined;
  /** Where there is one, no exchange is carried: its client may have redacted it since. */
  readonly conversation: PastInput["conversation"];
}

/** The blocks that a turn injects, in order, and those that it holds back. */
export interface Selection {
  /** The retrieved memories as blocks. */
  readonly resolution: Resolution;
  /** Distinct retrieved blocks that no earlier turn of this prompt injected, by relevance … */
  readonly fresh: readonly StoredBlock[];
  /** … the tokens of their lines … */
  readonly freshTokens: number;
  /** … how many of them must be injected, because the prompt contains a text that they supersede … */
  readonly due: number;
  /** … and those that this turn holds back. */
  readonly heldBack: ReadonlySet<Label>;
  readonly request: OrderingRequest;
  readonly ordering: Ordering;
}

/** Where the blocks go. */
export interface BlockPlace {
  /** Digest of the prompt before them. */
  readonly anchor: Digest;
  /** Whether more than instructions is before them, or later prompts begin with them: see {@link LEAST_HIT}. */
  readonly isInConversation: boolean;
  /** What earlier turns of this prompt injected. */
  readonly standing: Standing;
  /** What of that is superseded. */
  readonly superseded: SupersededLabels;
  /** Tokens before and after the blocks. */
  readonly before: number;
  readonly after: number;
  /** Maximum tokens of the blocks; null: no limit. */
  readonly room: number | null;
}

/**
 * Tokens that must be cached, or half of the blocks, to move blocks in a conversation. Only a branch of it shares what stands after its turns,
 * and the ranking of what was moved, some 14 tokens, is computed and stands in every later prompt. Figures: docs/papers.md, "Sessions of
 * several turns".
 */
const LEAST_HIT = 40;

/** Chooses and orders the blocks that a turn injects, to reuse most of the cache. Pure: serves nothing. */
export function selectBlocks(
  state: ScopeState,
  resolution: Resolution,
  input: SelectionInput,
  { anchor, isInConversation, standing, superseded, before, after, room }: BlockPlace,
): Selection {
  const fresh = resolution.blocks.filter(({ label }) => !standing.given.has(label));
  const freshTokens = fresh.reduce((sum, { tokens }) => sum + tokens, 0);
  const wanted = mostRelevant(fresh, superseded, input.depth?.blocks ?? fresh.length);
  // Below the engine's minimum: blocks stand by relevance.
  const isNeverCached = before + freshTokens + after < input.engine.minimumPrefixTokens;
  const request: OrderingRequest = {
    anchor,
    retrieved: room === null ? wanted : fitting(wanted, room),
    // Computed for all fresh blocks, so that deeper probes stay within the budget.
    carrying:
      room === null && input.mayCarry !== false
        ? carryAllowance(state, resolution, standing, input, { before, retrieved: freshTokens, after })
        : null,
    ...(isInConversation ? { leastHit: Math.min(LEAST_HIT, freshTokens / 2) } : {}),
    ...(isNeverCached ? { leastHit: Number.POSITIVE_INFINITY } : {}),
  };
  const extended = input.depth?.after ?? null;
  const { policy } = input;
  const ordering = extended === null ? policy.order(request, state) : orderAfter(extended, policy, request, state);
  const placed = new Set(ordering.labels);
  return {
    resolution,
    fresh,
    freshTokens,
    due: fresh.filter(({ label }) => superseded.has(label)).length,
    heldBack: new Set(fresh.map(({ label }) => label).filter((label) => !placed.has(label))),
    request,
    ordering,
  };
}

/**
 * The most relevant blocks. Blocks that supersede a text in the prompt always count among them, else the outdated text would count as
 * current.
 */
function mostRelevant(fresh: readonly StoredBlock[], due: SupersededLabels, count: number): readonly StoredBlock[] {
  if (count >= fresh.length) return fresh;
  const others = fresh.filter(({ label }) => !due.has(label));
  const left = new Set(others.slice(Math.max(0, count - (fresh.length - others.length))).map(({ label }) => label));
  return fresh.filter(({ label }) => !left.has(label));
}

/** Greedily the most relevant blocks that fit into so many tokens; a block that does not fit is skipped. */
function fitting(blocks: readonly StoredBlock[], tokens: number): readonly StoredBlock[] {
  let left = tokens;
  return blocks.filter((block) => {
    if (block.tokens > left) return false;
    left -= block.tokens;
    return true;
  });
}

/** The budget for carried blocks in this turn; null for none. */
function carryAllowance(
  { register, bankedTokens }: ScopeState,
  resolution: Resolution,
  { given }: Standing,
  { memoryBudgetTokens: budget, memoryBudgetRatio: ratio, engine, conversation }: SelectionInput,
  around: AroundBlocks,
): CarryAllowance | null {
  const { retrieved } = around;
  if (retrieved === 0 || (budget === null && ratio === null)) return null;
  const own = budget === null ? null : budget - retrieved;
  const banked = ratio === null ? null : bankAllowance(bankedTokens, ratio, retrieved);
  const tokens = Math.min(own ?? Number.POSITIVE_INFINITY, banked?.tokens ?? Number.POSITIVE_INFINITY);
  if (tokens <= 0) return null;
  const leftOut = new Set(resolution.leftOut);
  return {
    tokens,
    ownTokens: own,
    bankedTokens: banked?.banked ?? null,
    knownTokens: register.currentTokens,
    spared: sparedBy(engine, around),
    tokensOf: (label) => {
      const block = register.get(label);
      if (block === undefined || block.supersededBy !== null || given.has(label) || leftOut.has(label)) return null;
      if (conversation !== null && isExchange(block.text)) return null;
      return register.isOfRuns(label) ? null : block.tokens;
    },
  };
}

/** One checked request with its memories. */
export interface ComposeInput extends PastInput, SelectionInput {
  /** In relevance order, best first. */
  readonly memories: readonly RenderedMemory[];
  /** Texts of known memories as they are now, which the request does not ask for. Default: none. */
  readonly changed?: readonly RenderedMemory[] | undefined;
  /** Those of which their source says that they no longer hold. Default: none. */
  readonly ended?: readonly EndedMemory[] | undefined;
  /** Whether the conversation lost its end since its newest prompt, because a memory was forgotten. Default: no. */
  readonly isCut?: boolean | undefined;
  /** Decides what the engine should have evicted by `now`. */
  readonly residency: ResidencyModel;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly annotations: Annotations;
  /** What later prompts of the conversation keep of this one's injection. */
  readonly retention: RetentionName;
  readonly countTokens: TokenCounter;
  /**
   * Maximum tokens of the prompt, by the token counter: a longer one becomes a fresh start with the blocks that fit. Throws
   * {@link PromptTooLongError} if the messages alone are longer. Default: no limit.
   */
  readonly maxPromptTokens?: number | null | undefined;
  /** Tokens that the engine was found to accept: the same, but messages that come to more are composed without memories. */
  readonly acceptedTokens?: number | null | undefined;
  /**
   * Tokens that a prompt of this conversation may have to be still in the engine's cache at its next turn, by what others use of it;
   * see `SharedCache.shareOf`. Default: no limit.
   */
  readonly shareTokens?: number | undefined;
  /** How many leading tokens of the conversation's newest prompt the engine holds at most; see `SharedCache.residentOf`. Default: all. */
  readonly residentTokens?: number | undefined;
  /** See `SharedCache.heldHead`. Default: none. */
  readonly heldHead?: HeldHead | undefined;
  /** How many of so many leading tokens the engine can have cached; see `SharedCache.wholeBlocks`. Default: all. */
  readonly wholeBlocks?: ((tokens: number) => number) | undefined;
  /** The instructions of the user's prompt before, and milliseconds since it; null: not known. */
  readonly earlier?: { readonly head: Digest | null; readonly ageMs: number | null } | undefined;
  /** Which texts are given once. Default: {@link DEFAULT_DEDUPE}. */
  readonly dedupe?: DedupeName | undefined;
  /** Which messages of the conversation the prompt has. Default: `messages`. */
  readonly historyTerms?: HistoryTerms | undefined;
}

/** A prompt's messages come to more tokens than it may have, without any memory. */
export class PromptTooLongError extends Error {
  override readonly name = "PromptTooLongError";
  constructor(
    readonly tokens: number,
    readonly maxTokens: number,
  ) {
    super(`the messages come to ${tokens} tokens without any memory, more than ${maxTokens}`);
  }
}

/** A turn's memories as they appear in its prompt. */
export interface DraftedSection {
  readonly placement: SectionPlacement;
  readonly injection: Injection;
  /** As this prompt contains it, and as later prompts replay it. */
  readonly text: string;
  readonly kept: string;
  /** Digest of the prompt before the blocks; another one where these have labels. */
  readonly anchor: Digest;
  /** See `OwnSection`. */
  readonly sharedAnchor: Digest | null;
  /** Tokens of the prompt before the section. */
  readonly tokensBefore: number;
}

/** A prompt's place in its epoch. */
export interface DraftedEpoch {
  /** Why the epoch began with this prompt; null: it continues one. */
  readonly began: EpochReason | null;
  /** How many prompts the epoch has, this one included. */
  readonly prompts: number;
  /** How many messages memprefix left out of this prompt, … */
  readonly leftOut: number;
  /** … and, where it did so with this prompt, the meaning of the last one of them. */
  readonly behind: Digest | null;
}

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
  readonly tokens: number;
}

/** A complete prompt, not served yet. */
export interface PromptDraft {
  readonly prompt: Prompt;
  readonly totalTokens: number;
  readonly past: Past;
  /** The past as this prompt replays it. */
  readonly replay: Replay;
  readonly choice: RetentionChoice;
  readonly selection: Selection;
  readonly section: DraftedSection;
  /** Whether memories are held back because of `maxPromptTokens`. */
  readonly isCramped: boolean;
  /** The memories in front of the messages; null for none. */
  readonly head: EpochHead | null;
  /** Null: its history was not cut. */
  readonly epoch: DraftedEpoch | null;
  /** Messages that it has and the client did not send. */
  readonly added: number;
}

/**
 * A request read against its scope's state: what it continues, and its memories as blocks. Evicts and withdraws what no longer holds. Assigns
 * labels to the memories, so that drafts of one request at different depths render the same blocks to the same bytes.
 *
 * @param continues false: the prompt begins afresh, whatever it could continue
 */
export function readRequest({ register, index }: ScopeState, input: ComposeInput, continues = true): ReadRequest {
  const past = recallPast(input, continues);
  if (past.history.rest.messages.length === 0) throw new Error("compose needs a message that is no instruction");
  input.residency.expire(index, input.now);
  register.expire(input.now);
  register.resolve(input.changed ?? []);
  const retrieved = withoutReplaced(register.resolve(input.memories), past.turns, past.history);
  register.withdraw(input.ended ?? []);
  return { past, retrieved, room: null, head: null };
}

/** What a prompt is drafted from. */
export interface ReadRequest {
  readonly past: Past;
  /** Its memories, with those that the prompt says already. */
  readonly retrieved: Resolution;
  /** Maximum tokens of a fresh start, not counting the section's tags and annotations; null: no limit. */
  readonly room: number | null;
  /** The memories that are in front of the past's messages already; null: the newest turn injects them. */
  readonly head: EpochHead | null;
}

/** A draft of at most so many tokens; with more only where no memory is left to hold back. */
export function draftWithin(state: ScopeState, input: ComposeInput, most: number, continues: boolean): PromptDraft {
  let draft: PromptDraft;
  // The tokens of annotations and tags depend on the blocks: reduce the blocks' room by the excess and try again.
  for (let room = most; ; room -= draft.totalTokens - most) {
    draft = draftOf(state, input, { ...readRequest(state, input, continues), room });
    if (draft.totalTokens <= most || draft.selection.ordering.labels.length === 0) return draft;
  }
}

/**
 * Builds a prompt without serving it: replays what earlier turns injected, injects blocks that are not in the prompt yet, in the order that
 * reuses most of the cache, and refers to the rest. Expects at least one message that is not an instruction.
 */
export function draftOf(
  state: ScopeState,
  input: ComposeInput,
  { past, retrieved, room, head }: ReadRequest = readRequest(state, input),
): PromptDraft {
  const { register } = state;
  const { countTokens } = input;
  const { turns, history } = past;
  const { rest } = history;
  const placement = placementFor(rest.messages.at(-1) as ChatMessage, history, input.inResult === true);
  const { answer, question } = splitAtAnchor(rest, placement);

  const replayed = (own: Dropping) => replayTurns(state, turns, past.head, history, own, countTokens, input.heldHead);
  const going = replayed(DROPS_NOTHING);
  const asGivenIn = ({ turns: replayedTurns }: Replay) => {
    const standing = standingOf(replayedTurns.map(({ injection }) => injection));
    const superseded = supersededIn(register, standing);
    const given = withCorrections(register, asGiven(register, retrieved, standing), standing, superseded);
    return {
      standing,
      superseded,
      resolution: withoutRepeats(register, given, standing, superseded, input.messages, input.dedupe),
    };
  };
  const continued = asGivenIn(going);
  const turn = { resolution: continued.resolution, answer, question, placement };
  const chosen = chosenRetention(state, input, past, going, turn, head !== null);
  const choice = room === null ? chosen : { ...chosen, freshStart: history.turns.length > 0, keptTurns: 0 };
  const replay = choice.freshStart ? replayed(choice) : going;
  const { standing, superseded, resolution } = replay === going ? continued : asGivenIn(replay);
  const { prompt } = replay;
  prompt.push(answer);

  const beforeText = replay.tokens + tokensBeforeSection(answer.messages, placement, false, countTokens);
  const beforeSection =
    placement === "in-tool-result"
      ? replay.tokens + tokensBeforeSection(answer.messages, placement, true, countTokens)
      : beforeText;
  const before = (hasSection: boolean) => (hasSection ? beforeSection : beforeText);
  const isLabelled = sectionsHaveLabels(replay.sections, input.annotations);
  const questionTokens = messagesTokens(question.messages, countTokens);
  const selection =
    head?.selection ??
    selectBlocks(state, resolution, input, {
      anchor: prompt.anchorFor(placement, true, isLabelled),
      isInConversation: input.conversation !== null || replay.turns.length > 0 || answer.messages.length > 0,
      standing,
      superseded,
      before: before(true) + fixedTokens(SECTION_OPENING, countTokens),
      after: questionTokens,
      room: room === null ? null : room - before(true) - questionTokens,
    });
  const { ordering, heldBack } = selection;
  const injection = planInjection({
    requested: resolution.blocks.filter(({ label }) => !heldBack.has(label)),
    // An epoch's memories are this turn's own, in front: the best is given again where another stands first of them.
    standing: head === null ? standing : { ...standing, newest: new Set(ordering.labels.slice(0, 1)) },
    superseded,
    placed: head === null ? ordering.labels : [],
    carried: ordering.carried,
    placement,
    wanted: input.annotations,
    hasLabels: isLabelled,
  });
  const text = renderSection(injection, register.textOf);
  const kept =
    choice.retention === "keep" ? text : renderSection(retained(injection, choice.retention), register.textOf);
  const ownHasLabels = hasLabels(injection);
  const anchor = prompt.anchorFor(placement, text !== "", ownHasLabels);
  const sharedAnchor = ownHasLabels ? prompt.anchorFor(placement) : null;
  const tokensBefore = before(text !== "");
  prompt.pushTurn(question, placement, text);
  return {
    prompt,
    totalTokens: tokensBefore + injectionTokens(injection, placement, register, countTokens) + questionTokens,
    past,
    replay,
    choice,
    selection,
    section: { placement, injection, text, kept, anchor, sharedAnchor, tokensBefore },
    isCramped: room !== null,
    head,
    epoch: null,
    added: input.historyTerms?.added ?? 0,
  };
}

/**
 * Tokens that the engine has to compute for a prompt. The prompt of a new epoch hits where its head does, another up to its newest turn, and
 * the answer after that, which the engine computed itself.
 */
export function computedTokens({ totalTokens, replay, section }: PromptDraft): number {
  const isWhole = replay.turns.length > 0 && replay.cachedTokens === replay.tokens;
  return totalTokens - (isWhole ? section.tokensBefore : Math.max(replay.cachedTokens, replay.headTokens));
}

/** The retention of a turn. Never a fresh start from the head of an epoch that begins with it. */
function chosenRetention(
  { register }: ScopeState,
  input: ComposeInput,
  { turns, history }: Past,
  replay: Replay,
  turn: Pick<RetainableTurn, "answer" | "question" | "placement"> & { readonly resolution: Resolution },
  hasHead: boolean,
): RetentionChoice {
  const { retention } = input;
  if (retention !== "auto") return { retention, ...DROPS_NOTHING };
  if (hasHead) return { retention: "keep", ...DROPS_NOTHING };
  const seen = turns.seenOn(history.turns.map((recalled) => recalled.turn));
  const isRestated = history.turns.some((recalled) => recalled.isRestated);
  const { resolution, answer, question, placement } = turn;
  // By name: a copy of the whole input took as long as a fiftieth of a compose.
  const { annotations, engine, shareTokens, residentTokens, countTokens } = input;
  return chooseRetention(
    {
      replay,
      seen,
      isRestated,
      requested: resolution.blocks,
      answer,
      question,
      placement,
      annotations,
      engine,
      shareTokens,
      residentTokens,
      countTokens,
    },
    register,
  );
}

/** The placement of the section of a turn that ends with this message. */
export function placementFor(
  { role }: ChatMessage,
  { turns, rest }: RecalledHistory,
  inResult: boolean,
): SectionPlacement {
  if (role === "user") return "in-question";
  const earlier = turns.findLast(({ placement }) => placement !== "in-question")?.placement;
  if (inResult || earlier === "in-tool-result") return "in-tool-result";
  return ownMessageBehind([...turns.flatMap(({ messages }) => messages), ...rest.messages]);
}
