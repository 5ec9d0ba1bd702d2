import type { BlockRegister } from "../blocks/block-register.js";
import type { ContextIndex } from "../cache/context-index.js";
import type { CacheLookup } from "../cache/engine-cache.js";
import type { KnownTurns, ResidencyModel, SectionTokens } from "../cache/residency.js";
import { messagesTokens, Prompt, type PromptRoot, tokensBeforeSection } from "../prompt/prompt.js";
import {
  hasLabels,
  type InjectedBlock,
  type Injection,
  isOwnMessage,
  renderSection,
  SECTION_OPENING,
  type SectionPlacement,
} from "../prompt/section.js";
import { keptIn, type LruMap } from "../text/collections.js";
import type { Digest, NodeId, TurnId } from "../text/ids.js";
import { fixedTokens, type TokenCounter } from "../text/message.js";
import {
  type Conversation,
  type Dropping,
  type PromptSection,
  type ReplayedTurn,
  type SpokenTurn,
  standingInjections,
  type Turn,
} from "./conversation.js";
import { type RecalledHistory, type RecalledTurn, splitAtAnchor } from "./history.js";
import { injectionTokens } from "./injecting.js";

export interface Replay extends KnownTurns {
  readonly prompt: Prompt;
  readonly head: Digest;
  readonly headTokens: number;
  /** Tokens of the prompt that the engine holds because others sent them. */
  readonly othersTokens: number;
  readonly turns: readonly ReplayedTurn[];
  readonly tokens: number;
  /** Tokens of the prefix that earlier prompts share, evicted or not. */
  readonly knownTokens: number;
  /** Leading messages that equal those of an earlier prompt byte for byte. */
  readonly stableMessages: number;
}

interface ReplayScope {
  readonly index: ContextIndex;
  readonly register: BlockRegister;
  readonly headTokens: LruMap<Digest, number>;
}

export interface ReplayInput {
  readonly countTokens: TokenCounter;
  readonly cache: Pick<CacheLookup, "heldHead">;
  readonly root?: PromptRoot | undefined;
}

/** Replays what later prompts keep of every turn. The sent prompt's rolling digest shows changed tools, instructions, memories and annotations. */
export function replayTurns(
  { index, register, headTokens: counted }: ReplayScope,
  { head, conversation, turns: recalledTurns }: RecalledHistory,
  own: Dropping,
  { countTokens, cache, root }: ReplayInput,
): Replay {
  const prompt = new Prompt(root);
  prompt.push(head);
  const headDigest = prompt.digest;
  const headTokens = keptIn(counted, headDigest, () => messagesTokens(head.messages, countTokens));
  const standing = standingInjections(
    recalledTurns.map(({ turn }) => turn),
    own,
  );
  const turns: ReplayedTurn[] = [];
  let tokens = headTokens;
  let stableMessages = 0;
  let knownTokens = recalledTurns.length === 0 ? 0 : headTokens;
  // Another prompt with these instructions is cached.
  const othersTokens = cache.heldHead(headDigest, headTokens);
  let cachedTokens = index.hasAnchor(headDigest) ? headTokens : othersTokens;
  let cachedEnd: NodeId | null = null;
  let cachedSections = 0;
  for (const [at, recalled] of recalledTurns.entries()) {
    const { turn } = recalled;
    const injection = standing[at] as Injection;
    const replayed = replayTurn(conversation, recalled, injection, prompt, tokens, register, countTokens);
    turns.push(replayed);
    const { anchor, before, end, sentBy } = replayed;
    const labels = injection.blocks.map(({ label }) => label);
    if (anchor === turn.anchor) {
      stableMessages = prompt.messages.length - messagesAfterAnchor(recalled.placement, replayed.section);
      knownTokens = before;
    }
    if (index.hasAnchor(anchor)) {
      const held = index.heldBlocks(anchor, labels);
      if (sentBy !== null && held === labels.length) {
        cachedTokens = end;
        cachedEnd = index.endOf(anchor, labels);
        cachedSections = turns.length;
      } else {
        cachedTokens = before + sectionPrefixTokens(injection.blocks.slice(0, held), register, countTokens);
      }
    }
    tokens = end;
    if (sentBy !== null) {
      stableMessages = prompt.messages.length;
      knownTokens = end;
    }
  }
  return {
    prompt,
    head: headDigest,
    headTokens,
    othersTokens,
    turns,
    tokens,
    knownTokens,
    stableMessages,
    cachedTokens,
    cachedEnd,
    cachedSections,
  };
}

/** Tokens from a section's start to the end of its first blocks. */
function sectionPrefixTokens(
  blocks: readonly InjectedBlock[],
  register: BlockRegister,
  countTokens: TokenCounter,
): number {
  if (blocks.length === 0) return 0;
  return blocks.reduce((sum, block) => sum + register.lineTokens(block), fixedTokens(SECTION_OPENING, countTokens));
}

/** A prompt's sections for residency models, its own last; earlier ones only for a model that foresees, and with restated turns. */
export function promptSections(
  replay: Replay,
  own: PromptSection,
  { foresee }: Pick<ResidencyModel, "foresee">,
  register: BlockRegister,
  countTokens: TokenCounter,
  hasRestated = false,
): readonly SectionTokens[] {
  const isAllKnown = foresee === undefined && !hasRestated;
  const shared = own.sharedAnchor == null ? [] : [{ ...own, anchor: own.sharedAnchor, blocks: [], end: own.before }];
  const read = [...(isAllKnown ? [] : replay.turns), ...shared, own];
  return read.map((section) => sectionTokens(section, register, countTokens));
}

function sectionTokens(
  { anchor, blocks, before, end, sentBy }: PromptSection,
  register: BlockRegister,
  countTokens: TokenCounter,
): SectionTokens {
  const labels = blocks.map(({ label }) => label);
  const opening = fixedTokens(SECTION_OPENING, countTokens);
  const blockTokens = blocks.reduce((sum, block) => sum + register.lineTokens(block), 0);
  return {
    anchor,
    labels,
    before: before + opening,
    behind: Math.max(0, end - before - opening - blockTokens),
    end,
    sentBy,
    upTo: (count, goesOn) => {
      if (count === 0) return goesOn ? before + opening : before;
      return before + sectionPrefixTokens(blocks.slice(0, count), register, countTokens);
    },
  };
}

function replayTurn(
  conversation: Conversation,
  recalled: RecalledTurn,
  injection: Injection,
  prompt: Prompt,
  tokensBefore: number,
  register: BlockRegister,
  countTokens: TokenCounter,
): ReplayedTurn {
  const { turn, messages, placement, isRestated } = recalled;
  const prefix = prompt.digest;
  const known = isRestated ? undefined : conversation.replayOf(turn.id);
  if (known?.prefix === prefix && isSame(known.injection, injection)) {
    prompt.pushAgain(messages, placement, known.section, known.after);
    return known;
  }
  const { answer, question } = splitAtAnchor(recalled, placement);
  const section = renderSection(injection, register.textOf);
  prompt.push(answer);
  const anchor = prompt.anchorFor(placement, section !== "", hasLabels(injection));
  prompt.pushTurn(question, placement, section);
  const after = prompt.digest;
  const tokens = {
    answer: tokensBeforeSection(answer.messages, placement, section !== "", countTokens),
    section: injectionTokens(injection, placement, register, countTokens),
    question: messagesTokens(question.messages, countTokens),
  };
  const before = tokensBefore + tokens.answer;
  const end = before + tokens.section + tokens.question;
  const sentBy = after === turn.prompt ? turn.id : null;
  const { blocks } = injection;
  const replayed = { prefix, injection, section, after, tokens, anchor, blocks, before, end, sentBy };
  if (!isRestated) conversation.rememberReplay(turn.id, replayed);
  return replayed;
}

function messagesAfterAnchor(placement: SectionPlacement, section: string): number {
  return !isOwnMessage(placement) || section !== "" ? 1 : 0;
}

/** Injections never change, so the number of kept parts decides. */
function isSame(a: Injection, b: Injection): boolean {
  return a.blocks.length === b.blocks.length && a.annotations.length === b.annotations.length;
}

/**
 * The path of turns whose stored bytes are a prefix of this prompt. From the first turn that the client sent in another form, turns are restated:
 * stored again as children of the same parents, or reused. The original turns stay, so that both forms can be repeated byte for byte.
 */
export function exactPath(
  { conversation, turns }: RecalledHistory,
  replay: Replay,
  newTurnId: () => TurnId,
): { readonly parent: TurnId | null; readonly restated: readonly SpokenTurn[] } {
  const restated: SpokenTurn[] = [];
  let last: Turn | null = null;
  for (const [at, { turn, messages, digests, placement, isRestated }] of turns.entries()) {
    const replayed = replay.turns[at];
    if (replayed === undefined) throw new Error("a recalled turn was not replayed");
    const parent: TurnId | null = last?.id ?? null;
    if (!isRestated && turn.parent === parent) {
      last = turn;
      continue;
    }
    const { after: prompt, anchor } = replayed;
    const again: Turn | undefined = conversation
      .childrenOf(parent)
      .find(
        (other) => other.prompt === prompt && other.anchor === anchor && injectsSame(other, { ...turn, placement }),
      );
    if (again !== undefined) {
      last = again;
      continue;
    }
    const id = newTurnId();
    last = {
      ...turn,
      id,
      parent,
      given: digests,
      placement,
      head: replay.head,
      prompt,
      anchor,
      promptTokens: 0,
      computedTokens: 0,
      epoch: last?.epoch ?? id,
    };
    restated.push({ turn: last, given: messages });
  }
  return { parent: last?.id ?? null, restated };
}

function injectsSame(a: Turn, b: Turn): boolean {
  const isKeptAlike = a.retention === b.retention && a.placement === b.placement;
  const isAfreshAlike = a.freshStart === b.freshStart && a.keptTurns === b.keptTurns;
  return isKeptAlike && isAfreshAlike && JSON.stringify(a.injection) === JSON.stringify(b.injection);
}
