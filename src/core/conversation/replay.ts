import type { BlockRegister } from "../blocks/block-register.js";
import type { ContextIndex } from "../context-index/context-index.js";
import type { InjectedBlock, Injection } from "../prompt/injection.js";
import { type DigestedMessages, messagesTokens, Prompt, tokensBeforeSection } from "../prompt/prompt.js";
import { renderSection, SECTION_OPENING } from "../prompt/rendering.js";
import { isOwnMessage, type SectionPlacement } from "../prompt/section-placement.js";
import type { Digest, NodeId, TurnId } from "../text/ids.js";
import { LruMap } from "../text/lru-map.js";
import type { TokenCounter } from "../text/token-counter.js";
import type { Conversation, RecalledHistory, RecalledTurn } from "./conversation.js";
import { injectionTokens } from "./injecting.js";
import { standingInjections } from "./retention.js";
import type { ReplayedTurn } from "./turn.js";

/** The part of a prompt that earlier turns made, built again. */
export interface Replay {
  readonly prompt: Prompt;
  /** Digest of the instructions. */
  readonly head: Digest;
  readonly headTokens: number;
  /** What each turn added. */
  readonly turns: readonly ReplayedTurn[];
  readonly tokens: number;
  /** Messages from the front that are byte for byte those of an earlier prompt. */
  readonly stableMessages: number;
  /** Tokens from the front that earlier prompts began with and that were not evicted. */
  readonly cachedTokens: number;
  /** Node of the index where that prompt's blocks end; null for none. */
  readonly cachedEnd: NodeId | null;
  /** How many of its sections are in that prompt. */
  readonly cachedSections: number;
  /** Where its sections stand, first to last. */
  readonly sections: readonly PromptSection[];
}

/** A section of a prompt, by what stands before it. */
export interface PromptSection {
  readonly anchor: Digest;
  readonly blocks: readonly InjectedBlock[];
  /** Tokens before it … */
  readonly before: number;
  /** … and to the end of its turn. */
  readonly end: number;
  /** The turn that sent the prompt as it is up to there; null where none did. */
  readonly sentBy: TurnId | null;
}

/** What a scope knows that replay reads; only `heads` may change, by a count that it did not hold. */
export interface ReplayKnowledge {
  readonly index: ContextIndex;
  readonly register: BlockRegister;
  readonly heads: CountedHeads;
}

/**
 * Puts back what later prompts keep of every turn's injection, where it stood (docs/internals/algorithms.md, "Conversations"); after a
 * fresh start nothing. What is stable is not assumed: the rolling digest of what is built now is compared with that of what was sent then,
 * so other instructions, a forgotten memory or a dropped annotation show.
 */
export function replayTurns(
  { index, register, heads }: ReplayKnowledge,
  conversation: Conversation,
  head: DigestedMessages,
  history: RecalledHistory,
  freshStart: boolean,
  countTokens: TokenCounter,
): Replay {
  const prompt = new Prompt();
  prompt.push(head);
  const headDigest = prompt.digest;
  const headTokens = heads.tokensOf(headDigest, () => messagesTokens(head.messages, countTokens));
  const standing = standingInjections(
    history.turns.map(({ turn }) => turn),
    freshStart,
  );
  const turns: ReplayedTurn[] = [];
  let tokens = headTokens;
  let stableMessages = 0;
  let cachedTokens = 0;
  let cachedEnd: NodeId | null = null;
  let cachedSections = 0;
  const sections: PromptSection[] = [];
  for (const [at, recalled] of history.turns.entries()) {
    const { turn } = recalled;
    const injection = standing[at] as Injection;
    const replayed = replayTurn(conversation, recalled, injection, prompt, register, countTokens);
    turns.push(replayed);
    const { anchor, after } = replayed;
    const labels = injection.blocks.map(({ label }) => label);
    tokens += replayed.tokens.answer;
    if (anchor === turn.anchor)
      stableMessages = prompt.messages.length - messagesAfterAnchor(recalled.placement, replayed.section);
    const end = tokens + replayed.tokens.section + replayed.tokens.question;
    const sentBy = after === turn.prompt ? turn.id : null;
    sections.push({ anchor, blocks: injection.blocks, before: tokens, end, sentBy });
    if (index.hasAnchor(anchor)) {
      const held = index.heldBlocks(anchor, labels);
      if (after === turn.prompt && held === labels.length) {
        cachedTokens = end;
        cachedEnd = index.endOf(anchor, labels);
        cachedSections = sections.length;
      } else {
        cachedTokens = tokens + beginningTokens(injection.blocks.slice(0, held), register, countTokens);
      }
    }
    tokens = end;
    if (after === turn.prompt) stableMessages = prompt.messages.length;
  }
  return {
    prompt,
    head: headDigest,
    headTokens,
    turns,
    tokens,
    stableMessages,
    cachedTokens,
    cachedEnd,
    cachedSections,
    sections,
  };
}

/** Tokens of a section up to the end of its first blocks; none where there are none. */
export function beginningTokens(
  blocks: readonly InjectedBlock[],
  register: BlockRegister,
  countTokens: TokenCounter,
): number {
  if (blocks.length === 0) return 0;
  return blocks.reduce((sum, block) => sum + register.lineTokens(block), countTokens(SECTION_OPENING));
}

function replayTurn(
  conversation: Conversation,
  recalled: RecalledTurn,
  injection: Injection,
  prompt: Prompt,
  register: BlockRegister,
  countTokens: TokenCounter,
): ReplayedTurn {
  const { turn, messages, placement, isRestated } = recalled;
  const before = prompt.digest;
  const known = isRestated ? undefined : conversation.replayOf(turn.id);
  if (known?.before === before && isSame(known.injection, injection)) {
    prompt.pushAgain(messages, placement, known.section, known.after);
    return known;
  }
  const { answer, question } = splitAtAnchor(recalled, placement);
  const section = renderSection(injection, register.textOf);
  prompt.push(answer);
  const anchor = prompt.anchorFor(placement, section !== "");
  prompt.pushTurn(question, placement, section);
  const tokens = {
    answer: tokensBeforeSection(answer.messages, placement, section !== "", countTokens),
    section: injectionTokens(injection, placement, register, countTokens),
    question: messagesTokens(question.messages, countTokens),
  };
  const replayed = { before, injection, section, anchor, after: prompt.digest, tokens };
  if (!isRestated) conversation.rememberReplay(turn.id, replayed);
  return replayed;
}

/** A turn's plain messages, taken apart where its section stands. */
export function splitAtAnchor(
  { messages, digests }: DigestedMessages,
  placement: SectionPlacement,
): { readonly answer: DigestedMessages; readonly question: DigestedMessages } {
  const split = messages.length - (placement === "in-question" ? 1 : 0);
  return {
    answer: { messages: messages.slice(0, split), digests: digests.slice(0, split) },
    question: { messages: messages.slice(split), digests: digests.slice(split) },
  };
}

/** Messages that a turn adds behind its anchor. */
function messagesAfterAnchor(placement: SectionPlacement, section: string): number {
  return !isOwnMessage(placement) || section !== "" ? 1 : 0;
}

/** Both are what is kept of one turn's injection, which is never changed: they differ in how much is kept. */
function isSame(a: Injection, b: Injection): boolean {
  return a.blocks.length === b.blocks.length && a.annotations.length === b.annotations.length;
}

/** An agent has a few sets of instructions; more than these are counted again. */
const MOST_HEADS = 4;

/** Token counts of the instructions that a scope's last prompts began with: they are long, and the same from prompt to prompt. */
export class CountedHeads {
  readonly #tokens = new LruMap<Digest, number>(MOST_HEADS);

  /** @param count asked where they are not known */
  tokensOf(head: Digest, count: () => number): number {
    const known = this.#tokens.get(head);
    if (known !== undefined) return known;
    const tokens = count();
    this.#tokens.set(head, tokens);
    return tokens;
  }
}
