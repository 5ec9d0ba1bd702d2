/* Draft: a request's prompt before it is served. The first candidate within its limit is the prompt. */

import type { Resolution } from "../blocks/context-block.js";
import { chooseRetention } from "../conversation/auto-retention.js";
import {
  type ChosenRetention,
  DROPS_NOTHING,
  type Dropping,
  type PromptSection,
  retained,
  standingOf,
} from "../conversation/conversation.js";
import {
  type EpochReason,
  endOfEpoch,
  type HistoryTerms,
  newestWithin,
  type PromptTokens,
  type WindowTerms,
} from "../conversation/epoch.js";
import { type RecalledHistory, recallHistory, splitAtAnchor, withoutEnded } from "../conversation/history.js";
import {
  injectionTokens,
  planInjection,
  sectionsHaveLabels,
  supersededIn,
  withUpdates,
} from "../conversation/injecting.js";
import { type InstructionChange, isSameChange, NO_CHANGE } from "../conversation/instructions.js";
import { memoryToRepeat } from "../conversation/repeated-memory.js";
import { asGiven, withoutRepeats, withoutReplaced } from "../conversation/repeats.js";
import { type Replay, replayTurns } from "../conversation/replay.js";
import { withoutSpanReferences, withSpanReferences } from "../conversation/spans.js";
import { promptCost, smooth } from "../cost/engine-model.js";
import { messagesTokens, type Prompt, tokensBeforeSection } from "../prompt/prompt.js";
import { hasLabels, type Injection, renderSection, SECTION_OPENING, type SectionPlacement } from "../prompt/section.js";
import type { Digest } from "../text/ids.js";
import { type ChatMessage, fixedTokens, instructionsAtHead, meaningOf } from "../text/message.js";
import { type ComposeInput, PromptTooLongError } from "./compose-input.js";
import { type EpochHead, epochHead } from "./epoch-head.js";
import type { PlanEpoch } from "./plan.js";
import type { ScopeState } from "./scope-state.js";
import { type Selection, selectBlocks, tokensIn } from "./selection.js";

export interface DraftedSection extends PromptSection {
  readonly placement: SectionPlacement;
  readonly injection: Injection;
  /** `text` is in this prompt, `kept` in later ones. */
  readonly text: string;
  readonly kept: string;
  readonly tokens: number;
}

export interface PromptDraft {
  readonly prompt: Prompt;
  readonly totalTokens: number;
  readonly computedTokens: number;
  readonly history: RecalledHistory;
  readonly replay: Replay;
  readonly choice: ChosenRetention;
  readonly selection: Selection;
  readonly section: DraftedSection;
  /** Whether a limit holds memories back. */
  readonly isCramped: boolean;
  /** Memories in front of the messages. */
  readonly head: EpochHead | null;
  readonly epoch: PlanEpoch | null;
  /** The meaning of the last message that memprefix left out. */
  readonly behind: Digest | null;
  /** Messages that the client did not send. */
  readonly added: number;
}

interface DraftRequest {
  readonly state: ScopeState;
  readonly input: ComposeInput;
  readonly resolution: Resolution;
  readonly terms: HistoryTerms;
  /** Maximum tokens; infinite: no limit. */
  readonly most: number;
}

const ONLY_ITS_MESSAGES: HistoryTerms = { added: 0, ratio: 1, isByCost: false, mayCut: false, window: null };

interface DraftForm {
  readonly messages: readonly ChatMessage[];
  /** False: it starts afresh. */
  readonly continues: boolean;
  /** Messages that the client did not send. */
  readonly added: number;
  /** See {@link PlanEpoch}; 0 prompts: the history is not cut. */
  readonly began: EpochReason | null;
  readonly prompts: number;
  readonly leftOut: number;
  readonly behind: Digest | null;
  /** Maximum tokens of a fresh start, without the section's tags and annotations. */
  readonly room: number | null;
  /** Puts the memories in front of the messages, with carried ones in this share; see {@link epochHead}. Null: in the newest turn. */
  readonly inFront: number | "own" | null;
}

interface Candidate {
  readonly draft: PromptDraft;
  readonly limit: number;
}

/** An epoch whose first prompt has a smaller share of its window's tokens does not predict another's cost. */
const LIKE_A_WINDOW = 0.75;

/** Maximum share of the limit of an epoch that begins with a whole history, or with a part of it. */
const ROOMY = 0.75;
const SHORT = 0.5;

/** Drafts a request's prompt; serves nothing. Throws {@link PromptTooLongError}. Expects at least one message that is not an instruction. */
export function draftPrompt(state: ScopeState, input: ComposeInput): PromptDraft {
  const { maxPromptTokens, acceptedTokens } = input;
  const most = Math.min(maxPromptTokens ?? Number.POSITIVE_INFINITY, acceptedTokens ?? Number.POSITIVE_INFINITY);
  const terms = input.historyTerms ?? ONLY_ITS_MESSAGES;
  const draft = firstWithin(candidates({ state, input, resolution: resolveMemories(state, input), terms, most }));
  if (maxPromptTokens != null && draft.totalTokens > maxPromptTokens)
    throw new PromptTooLongError(draft.totalTokens, maxPromptTokens);
  return draft;
}

/** Resolves a request's memories. Evicts and withdraws what no longer holds. Assigns labels, so that all drafts render the same bytes. */
function resolveMemories({ register, index }: ScopeState, input: ComposeInput): Resolution {
  if (instructionsAtHead(input.messages) === input.messages.length)
    throw new Error("compose needs a message that is no instruction");
  input.cache.residency.expire(index, input.now);
  register.expire(input.now);
  register.resolve(input.changed ?? []);
  const resolution = register.resolve(input.memories);
  register.withdraw(input.ended ?? []);
  return resolution;
}

/** The last candidate if none is within its limit. */
function firstWithin(all: Iterable<Candidate>): PromptDraft {
  let last: PromptDraft | null = null;
  for (const { draft, limit } of all) {
    if (draft.totalTokens <= limit) return draft;
    last = draft;
  }
  if (last === null) throw new Error("a request has a draft");
  return last;
}

function* candidates(request: DraftRequest): Generator<Candidate> {
  const { input, most } = request;
  const { window, mayCut, added } = request.terms;
  if (window?.kind === "begins") return yield* ofNewEpoch(request, window.reason);
  if (window?.kind === "continued") return yield* ofWindow(request, window);
  const whole = wholeForm(input.messages, added);
  yield { draft: draftOf(request, whole), limit: most };
  yield* mayCut ? ofNewEpoch(request, "limit") : withFewerMemories(request, whole);
}

function wholeForm(messages: readonly ChatMessage[], added: number): DraftForm {
  return {
    messages,
    added,
    continues: true,
    began: null,
    prompts: 0,
    leftOut: 0,
    behind: null,
    room: null,
    inFront: null,
  };
}

/** The next prompt of a window's epoch, or the first of another. */
function* ofWindow(
  request: DraftRequest,
  { messages, prompts, leftOut, added }: WindowTerms & { readonly kind: "continued" },
): Generator<Candidate> {
  const { input, most } = request;
  const { ratio, isByCost } = request.terms;
  const next = draftOf(request, { ...wholeForm(messages, added), prompts: prompts.length + 1, leftOut });
  // If memprefix left messages out, the client's window is the longer one.
  const exact =
    leftOut > 0
      ? Number.POSITIVE_INFINITY
      : messagesTokens(input.messages, input.countTokens) + tokensIn(next.selection.resolution.blocks);
  const share = isByCost ? input.cache.shareTokens : Number.POSITIVE_INFINITY;
  const bounds = { ratio, max: most, share, engine: isByCost ? input.engine : null };
  const endAfter = (earlier: readonly PromptTokens[]) => endOfEpoch(earlier, promptTokens(next), exact, bounds);
  const ends = endAfter(prompts);
  if (ends === null) return yield { draft: next, limit: next.totalTokens };
  if (ends !== "cost") return yield* ofNewEpoch(request, ends);
  // The draft predicts the next epoch better than what this one began with.
  const first = firstWithin(ofNewEpoch(request, ends));
  const others = (prompts[0]?.total ?? 0) < LIKE_A_WINDOW * exact ? [] : prompts.slice(1);
  const draft = endAfter([promptTokens(first), ...others]) === null ? next : first;
  yield { draft, limit: draft.totalTokens };
}

function promptTokens({ totalTokens: total, computedTokens: computed }: PromptDraft): PromptTokens {
  return { total, computed };
}

/** An epoch's first prompt: the request's messages, or the newest that fit. A whole history is cut until the epoch has room to grow. */
function* ofNewEpoch(request: DraftRequest, began: EpochReason): Generator<Candidate> {
  const { input, most } = request;
  const { mayCut, ratio, window, added } = request.terms;
  const all: DraftForm = { ...wholeForm(input.messages, added), continues: false, began, prompts: 1 };
  if (!mayCut) {
    yield { draft: draftExact(request, all), limit: most };
    return yield* withFewerMemories(request, all);
  }
  // A prompt over its share would be evicted before the next one, which then continues nothing.
  if (began === "share" && window?.kind === "continued" && window.leftOut === 0) {
    const draft = draftExact(request, all);
    if (draft.totalTokens > input.cache.shareTokens) yield { draft, limit: most };
  }
  // Does not draft what is too long in any case.
  const near = newestOf(request, all, most);
  const longest = draftHeaded(request, near, ratio);
  const isWhole = window === null || (window.kind === "continued" && window.leftOut > 0);
  if (near === all) yield { draft: longest, limit: most * (isWhole ? ROOMY : 1) };
  const around = longest.replay.headTokens + tokensIn(longest.selection.resolution.blocks);
  const short = newestOf(request, all, most * SHORT - around);
  yield { draft: short === all ? longest : draftHeaded(request, short, ratio), limit: most };
  yield* withFewerMemories(request, short);
}

/** Fresh starts with fewer and fewer memories. The last has none, and may still be too long. */
function* withFewerMemories(request: DraftRequest, form: DraftForm): Generator<Candidate> {
  const { most } = request;
  // Annotations and tags depend on the blocks: reduce their room by the excess and retry.
  for (let room = most; ; ) {
    const draft = draftOf(request, { ...form, room });
    yield { draft, limit: most };
    if (draft.selection.ordering.labels.length === 0) return;
    room -= draft.totalTokens - most;
  }
}

/** The newest messages that fit into so many tokens. Returns the form itself if all do. */
function newestOf({ input }: DraftRequest, form: DraftForm, tokens: number): DraftForm {
  const { countTokens, dedupe } = input;
  const areReferences = dedupe === "spans";
  // References may refer to what is left out.
  const messages = areReferences ? withoutSpanReferences(form.messages) : form.messages;
  const first = instructionsAtHead(messages);
  const said = messages.slice(first);
  const kept = newestWithin(said, tokens, countTokens);
  const leftOut = said.length - kept.length;
  if (leftOut === 0) return form;
  const newest = [...messages.slice(0, first), ...kept];
  return {
    ...form,
    messages: areReferences ? withSpanReferences(newest) : newest,
    added: Math.max(0, form.added - leftOut),
    leftOut,
    behind: meaningOf(form.messages[first + leftOut - 1] as ChatMessage),
  };
}

/** An epoch's first prompt with its memories in front. Carries more for later epochs, up to the ratio, if there is room to grow. */
function draftHeaded(request: DraftRequest, form: DraftForm, ratio: number): PromptDraft {
  const draft = draftOf(request, { ...form, inFront: ratio - 1 });
  const isLong = draft.totalTokens > request.most * SHORT && (draft.head?.selection.ordering.carried.size ?? 0) > 0;
  return isLong ? draftOf(request, { ...form, inFront: 0 }) : draft;
}

/** A window's own messages, which no later prompt continues. Memories go in front if that costs less, or if others may be carried. */
function draftExact(request: DraftRequest, form: DraftForm): PromptDraft {
  const { engine, memoryBudgetTokens, memoryBudgetRatio } = request.input;
  const inFront = draftOf(request, { ...form, inFront: "own" });
  if (memoryBudgetTokens !== null || memoryBudgetRatio !== null) return inFront;
  const inQuestion = draftOf(request, form);
  const law = smooth(engine);
  const costOf = ({ totalTokens: total, computedTokens: computed }: PromptDraft) =>
    promptCost(law, total, total - computed);
  return costOf(inFront) <= costOf(inQuestion) ? inFront : inQuestion;
}

/** Replays earlier turns, injects new blocks in the order that reuses most of the cache, and refers to the rest. */
function draftOf(request: DraftRequest, form: DraftForm): PromptDraft {
  const { state, input } = request;
  const { register } = state;
  const { countTokens, annotations } = input;
  const { room, began, prompts, leftOut, behind, added } = form;
  const { head, history, choice, replayed } = readHistory(request, form);
  const { replay, standing, superseded, resolution } = replayed;
  const { placement } = history;
  const { answer, question } = splitAtAnchor(history.rest, placement);
  const { prompt } = replay;
  prompt.push(answer);

  const isOpen = placement === "in-tool-result";
  const beforeText = replay.tokens + tokensBeforeSection(answer.messages, placement, false, countTokens);
  const beforeSection = isOpen
    ? replay.tokens + tokensBeforeSection(answer.messages, placement, true, countTokens)
    : beforeText;
  const questionTokens = messagesTokens(question.messages, countTokens);
  const isLabelled = sectionsHaveLabels(replay.turns, annotations);
  const selection =
    head?.selection ??
    selectBlocks(state, resolution, input, {
      anchor: prompt.anchorFor(placement, true, isLabelled),
      isInConversation: input.conversation !== null || replay.turns.length > 0 || answer.messages.length > 0,
      standing,
      superseded,
      before: beforeSection + fixedTokens(SECTION_OPENING, countTokens),
      after: questionTokens,
      room: room === null ? null : room - beforeSection - questionTokens,
    });
  const { ordering, heldBack } = selection;
  const requested = resolution.blocks.filter(({ label }) => !heldBack.has(label));
  const planned = planInjection(
    {
      requested,
      best: memoryToRepeat(register, { blocks: requested, memories: resolution.memories }),
      // The best memory is repeated if another is first in front.
      standing: head === null ? standing : { ...standing, newest: new Set(ordering.labels.slice(0, 1)) },
      superseded,
      placed: head === null ? ordering.labels : [],
      carried: ordering.carried,
      placement,
      wanted: annotations,
      hasLabels: isLabelled,
    },
    register,
  );
  const injection = withInstructions(planned, replay.turns, history.changes);
  const text = renderSection(injection, register.textOf);
  const { retention } = choice;
  const kept = retention === "keep" ? text : renderSection(retained(injection, retention), register.textOf);
  const ownHasLabels = hasLabels(injection);
  const anchor = prompt.anchorFor(placement, text !== "", ownHasLabels);
  const sharedAnchor = ownHasLabels ? prompt.anchorFor(placement) : null;
  const before = text === "" ? beforeText : beforeSection;
  prompt.pushTurn(question, placement, text);
  const tokens = injectionTokens(injection, placement, register, countTokens);
  const totalTokens = before + tokens + questionTokens;
  const { blocks } = injection;
  const carriedTokens = head === null ? 0 : register.tokensOf(head.selection.ordering.carried);
  return {
    prompt,
    totalTokens,
    computedTokens: totalTokens - hitTokens(replay, before),
    history,
    replay,
    choice,
    selection,
    section: {
      placement,
      injection,
      text,
      kept,
      tokens,
      anchor,
      sharedAnchor,
      blocks,
      before,
      end: totalTokens,
      sentBy: null,
    },
    isCramped: room !== null,
    head,
    epoch: prompts === 0 ? null : { began, prompts, leftOut, headTokens: head?.tokens ?? 0, carriedTokens },
    behind,
    added,
  };
}

/** Says what the instructions are now, unless the prompt says it already. */
function withInstructions(
  { blocks, annotations }: Injection,
  turns: Replay["turns"],
  changes: InstructionChange | null,
): Injection {
  const told = turns.flatMap(({ injection }) => injection.annotations).findLast(({ kind }) => kind === "instructions");
  const last = told?.kind === "instructions" ? told : NO_CHANGE;
  if (isSameChange(last, changes ?? NO_CHANGE)) return { blocks, annotations };
  const { lines, removed } = changes ?? NO_CHANGE;
  return { blocks, annotations: [...annotations, { kind: "instructions", lines, removed }] };
}

/** Leading tokens that the engine has: a new epoch's up to its head, otherwise up to the newest turn and the answer after it. */
function hitTokens({ turns, cachedTokens, tokens, headTokens }: Replay, beforeSection: number): number {
  const isWhole = turns.length > 0 && cachedTokens === tokens;
  return isWhole ? beforeSection : Math.max(cachedTokens, headTokens);
}

function readHistory(request: DraftRequest, { messages, continues, inFront, room }: DraftForm) {
  const { state, input } = request;
  const { register } = state;
  const recalled = withoutEnded(register, recallHistory(input, messages, continues));
  const retrieved = withoutReplaced(request.resolution, recalled);
  const head = inFront === null ? null : epochHead(state, input, recalled, retrieved, inFront);
  const history = head?.history ?? recalled;
  const replayWithout = (dropped: Dropping, of = history) => {
    const replay = replayTurns(state, of, dropped, input);
    const standing = standingOf(replay.turns.map(({ injection }) => injection));
    const superseded = supersededIn(register, standing);
    const given = withUpdates(register, asGiven(register, retrieved, standing), standing, superseded);
    const resolution = withoutRepeats(register, given, standing, superseded, messages, input.dedupe);
    return { replay, standing, superseded, resolution };
  };
  const all = replayWithout(DROPS_NOTHING);
  const chosen = chosenRetention(request, history, all.replay, all.resolution, head !== null);
  const choice = room === null ? chosen : afreshWithin(chosen, history);
  if (!choice.freshStart) return { head, history, choice, replayed: all };
  if (history.changes === null) return { head, history, choice, replayed: replayWithout(choice) };
  // Other instructions leave nothing cached, so no turn's section stays for its cache.
  const afresh = { ...history, head: history.ownHead, changes: null };
  const whole = { ...choice, keptTurns: 0 };
  return { head, history: afresh, choice: whole, replayed: replayWithout(whole, afresh) };
}

/** What is too long gives its memories again, as many as fit. */
function afreshWithin(chosen: ChosenRetention, { turns }: RecalledHistory): ChosenRetention {
  if (turns.length === 0) return { ...chosen, ...DROPS_NOTHING };
  return { ...chosen, freshStart: true, keptTurns: 0, freshStartReason: "limit" };
}

/** The retention of a turn. The head of a new epoch is no fresh start. */
function chosenRetention(
  { state, input }: DraftRequest,
  history: RecalledHistory,
  replay: Replay,
  resolution: Resolution,
  hasHead: boolean,
): ChosenRetention {
  const { retention } = input;
  if (retention !== "auto") return { retention, ...DROPS_NOTHING };
  if (hasHead) return { retention: "keep", ...DROPS_NOTHING };
  return chooseRetention(state.register, input, history, replay, resolution);
}
