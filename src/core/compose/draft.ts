import type { BlockRegister } from "../blocks/block-register.js";
import { asGiven, DEFAULT_DEDUPE, type DedupeName, withoutContained } from "../blocks/contained-texts.js";
import {
  canonicalText,
  type EndedMemory,
  type RenderedMemory,
  type Resolution,
  type StoredBlock,
} from "../blocks/context-block.js";
import type { ResidencyModel } from "../context-index/residency.js";
import { chooseRetention, type RetainableTurn } from "../conversation/auto-retention.js";
import { NOTHING_STANDING, type RecalledHistory, type Standing, standingOf } from "../conversation/conversation.js";
import type { HistoryTerms } from "../conversation/epoch.js";
import {
  injectionTokens,
  planInjection,
  type SupersededLabels,
  supersededIn,
  withCorrections,
} from "../conversation/injecting.js";
import { type Replay, replayTurns, splitAtAnchor } from "../conversation/replay.js";
import { type RetentionChoice, type RetentionName, retained } from "../conversation/turn.js";
import { replacedExchanges } from "../conversation/window.js";
import { type AnnotationSettings, wantsLabels } from "../prompt/annotations.js";
import { exchangesIn, isExchange } from "../prompt/exchange-text.js";
import { type Injection, ownMessageBehind, type SectionPlacement, type ToolMemories } from "../prompt/injection.js";
import { messagesTokens, type Prompt, tokensBeforeSection } from "../prompt/prompt.js";
import { renderSection, SECTION_OPENING } from "../prompt/rendering.js";
import type { Digest } from "../text/ids.js";
import { type ChatMessage, messageText } from "../text/message.js";
import type { TokenCounter } from "../text/token-counter.js";
import { beginEpoch, type EpochHead } from "./epoch-head.js";
import { type Past, type PastInput, recallPast } from "./past.js";
import type { ScopeState } from "./scope-state.js";
import { type Selection, type SelectionInput, selectBlocks } from "./selection.js";

/** One checked request with its memories. */
export interface ComposeInput extends PastInput, SelectionInput {
  /** In relevance order, best first. */
  readonly memories: readonly RenderedMemory[];
  /** Texts of known memories as they are now, which the request does not ask for. Default: none. */
  readonly changed?: readonly RenderedMemory[] | undefined;
  /** Those of which their source says that they no longer hold. Default: none. */
  readonly ended?: readonly EndedMemory[] | undefined;
  /** Decides what the engine should have evicted by `now`. */
  readonly residency: ResidencyModel;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly annotations: AnnotationSettings;
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
  /** How many of so many leading tokens the engine can have cached; see `SharedCache.wholeBlocks`. Default: all. */
  readonly wholeBlocks?: ((tokens: number) => number) | undefined;
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
  /** Digest of the prompt before the blocks; another one where these are without labels. */
  readonly anchor: Digest;
  /** See `OwnSection`. */
  readonly sharedAnchor: Digest | null;
  /** Tokens of the prompt before the section. */
  readonly tokensBefore: number;
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
}

/** A draft of at most so many tokens; with more only where no memory is left to hold back. */
export function draftWithin(state: ScopeState, input: ComposeInput, most: number, isStart: boolean): PromptDraft {
  const start = isStart ? AFRESH : null;
  let draft: PromptDraft;
  // The tokens of annotations and tags depend on the blocks: reduce the blocks' room by the excess and try again.
  for (let room = most; ; room -= draft.totalTokens - most) {
    draft = draftWith(state, input, room, start);
    if (draft.totalTokens <= most || draft.selection.ordering.labels.length === 0) return draft;
  }
}

/** How an epoch begins. */
export interface EpochStart {
  /** Whether its memories go in front of its messages. */
  readonly inFront: boolean;
  /** Tokens of its head that were not retrieved, as a share of those that were; null: only what the request's own budget allows. */
  readonly carried: number | null;
}

/** Without the memories in front. */
export const AFRESH: EpochStart = { inFront: false, carried: null };

/**
 * Builds a prompt without serving it: replays what earlier turns injected, injects blocks that are not in the prompt yet, in the order that
 * reuses most of the cache, and refers to the rest. Assigns labels to the retrieved memories, so that drafts of one request at different
 * depths render the same blocks to the same bytes. Expects at least one message that is not an instruction.
 *
 * @param room maximum tokens of a fresh start, not counting the section's tags and annotations; null: no limit
 * @param start null: the prompt continues what is recalled
 */
export function draftWith(
  state: ScopeState,
  input: ComposeInput,
  room: number | null = null,
  start: EpochStart | null = null,
): PromptDraft {
  const { register, index } = state;
  const { countTokens } = input;
  const recalled = recallPast(input, start === null);
  if (recalled.history.rest.messages.length === 0) throw new Error("compose needs a message that is no instruction");
  input.residency.expire(index, input.now);
  register.expire(input.now);
  register.resolve(input.changed ?? []);
  const retrieved = withoutReplaced(register, register.resolve(input.memories), recalled);
  register.withdraw(input.ended ?? []);
  const begun =
    start === null || !start.inFront || room !== null
      ? null
      : beginEpoch(
          state,
          { ...input, carried: start.carried },
          recalled,
          withoutRepeats(register, retrieved, NOTHING_STANDING, new Map(), input),
        );
  const past = begun === null ? recalled : { ...recalled, history: begun.history };
  const head = begun?.head ?? null;
  const { turns, history } = past;
  const { rest } = history;
  const placement = placementFor(rest.messages.at(-1) as ChatMessage, history, input.toolMemories ?? null);
  const { answer, question } = splitAtAnchor(rest, placement);

  const replayed = (freshStart: boolean) => replayTurns(state, turns, past.head, history, freshStart, countTokens);
  const going = replayed(false);
  const asGivenIn = ({ turns: replayedTurns }: Replay) => {
    const standing = standingOf(replayedTurns.map(({ injection }) => injection));
    const superseded = supersededIn(register, standing);
    const given = withCorrections(register, asGiven(register, retrieved, standing), standing, superseded);
    return { standing, superseded, resolution: withoutRepeats(register, given, standing, superseded, input) };
  };
  const continued = asGivenIn(going);
  const turn = { resolution: continued.resolution, answer, question, placement };
  const chosen = chosenRetention(state, input, past, going, turn, head !== null);
  const choice = room === null ? chosen : { ...chosen, freshStart: history.turns.length > 0 };
  const replay = choice.freshStart ? replayed(true) : going;
  const { standing, superseded, resolution } = replay === going ? continued : asGivenIn(replay);
  const { prompt } = replay;
  prompt.push(answer);

  const beforeText = replay.tokens + tokensBeforeSection(answer.messages, placement, false, countTokens);
  const beforeSection =
    placement === "in-tool-result"
      ? replay.tokens + tokensBeforeSection(answer.messages, placement, true, countTokens)
      : beforeText;
  const before = (hasSection: boolean) => (hasSection ? beforeSection : beforeText);
  const hasLabels = sectionHasLabels(input);
  const questionTokens = messagesTokens(question.messages, countTokens);
  const selection =
    head?.selection ??
    selectBlocks(state, resolution, input, {
      anchor: prompt.anchorFor(placement, true, hasLabels),
      isInConversation: input.conversation !== null || replay.turns.length > 0 || answer.messages.length > 0,
      standing,
      superseded,
      before: before(true) + countTokens(SECTION_OPENING),
      after: questionTokens,
      room: room === null ? null : room - before(true) - questionTokens,
    });
  const { ordering, heldBack } = selection;
  const injection = planInjection({
    requested: resolution.blocks.filter(({ label }) => !heldBack.has(label)),
    standing,
    superseded,
    placed: head === null ? ordering.labels : [],
    carried: ordering.carried,
    placement,
    settings: input.annotations,
    hasLabels,
  });
  const text = renderSection(injection, register.textOf);
  const kept =
    choice.retention === "keep" ? text : renderSection(retained(injection, choice.retention), register.textOf);
  const anchor = prompt.anchorFor(placement, text !== "", hasLabels);
  const sharedAnchor = text === "" || hasLabels ? null : prompt.anchorFor(placement);
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
  };
}

/** Whether blocks are written with their labels: later turns may refer to them, or the caller's own lines do. */
export function sectionHasLabels({
  conversation,
  annotations,
}: Pick<ComposeInput, "conversation" | "annotations">): boolean {
  return conversation !== null || wantsLabels(annotations);
}

/** The request's memories without exchanges that the client has changed since they were recorded. */
function withoutReplaced(register: BlockRegister, resolution: Resolution, { turns, history }: Past): Resolution {
  const isReplaced = replacedExchanges(turns, history);
  const isOutdated = ({ label }: StoredBlock) => {
    const text = register.textOf(label);
    return isExchange(text) && isReplaced(text);
  };
  const outdated = new Set(resolution.blocks.filter(isOutdated).map(({ label }) => label));
  if (outdated.size === 0) return resolution;
  return {
    ...resolution,
    blocks: resolution.blocks.filter(({ label }) => !outdated.has(label)),
    memories: resolution.memories.filter(({ label }) => !outdated.has(label)),
    replaced: resolution.memories.filter(({ label }) => outdated.has(label)).map(({ memoryId }) => memoryId),
  };
}

/** The request's memories without those that the prompt says already, or says with another of them. */
function withoutRepeats(
  register: BlockRegister,
  resolution: Resolution,
  standing: Standing,
  superseded: SupersededLabels,
  { dedupe = DEFAULT_DEDUPE, messages }: ComposeInput,
): Resolution {
  if (dedupe === "exact") return resolution;
  const asked = messages.at(-1);
  const outdated = new Set([...standing.replaced.keys(), ...[...superseded.values()].flat()]);
  return withoutContained(register, resolution, {
    standing: outdated.size === 0 ? [...standing.given] : [...standing.given].filter((label) => !outdated.has(label)),
    due: superseded,
    question: asked?.role === "user" ? messageText(asked) : null,
    exchanges: () => new Set(exchangesIn(messages).map(canonicalText)),
  });
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
  if (retention !== "auto") return { retention, freshStart: false };
  if (hasHead) return { retention: "keep", freshStart: false };
  const seen = turns.seenOn(history.turns.map((recalled) => recalled.turn));
  const isRestated = history.turns.some((recalled) => recalled.isRestated);
  return chooseRetention({ ...input, ...turn, replay, seen, isRestated, requested: turn.resolution.blocks }, register);
}

/** The placement of the section of a turn that ends with this message. */
export function placementFor(
  { role }: ChatMessage,
  { turns, rest }: RecalledHistory,
  toolMemories: ToolMemories | null,
): SectionPlacement {
  if (role === "user") return "in-question";
  const earlier = turns.findLast(({ placement }) => placement !== "in-question")?.placement;
  if (toolMemories === "in_result" || (toolMemories === null && earlier === "in-tool-result")) return "in-tool-result";
  return ownMessageBehind([...turns.flatMap(({ messages }) => messages), ...rest.messages]);
}
