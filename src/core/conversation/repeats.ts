/* Repeats: memories that the prompt contains already, and exchanges that the client changed since. */

import type { BlockRegister } from "../blocks/block-register.js";
import type { RequestedMemory, Resolution, StoredBlock } from "../blocks/context-block.js";
import { withoutSections } from "../prompt/section.js";
import { groupBy } from "../text/collections.js";
import type { Digest, Label, MemoryId } from "../text/ids.js";
import { canonicalText, comparedText } from "../text/memory-text.js";
import { type ChatMessage, meaningOf, messageText } from "../text/message.js";
import type { Conversation, Standing } from "./conversation.js";
import type { RecalledHistory } from "./history.js";
import type { SupersededLabels } from "./injecting.js";

const USER = "User: ";
const ASSISTANT = "\nAssistant: ";
/** Maximum ways to split an exchange: the question may contain the words that begin its answer. */
const MOST_PARTINGS = 8;

export function isExchange(text: string): boolean {
  return text.startsWith(USER);
}

/** A question and its answer as one text, in the form in which it is written back, without sections. Null without either. */
export function exchangeText(question: string | undefined, answer: string): string | null {
  const reply = plainText(answer);
  return question === undefined || reply === "" ? null : `${USER}${question}${ASSISTANT}${reply}`;
}

/** Every way to split an exchange into question and answer; empty for another text. */
function exchangeParts(text: string): readonly { readonly question: string; readonly answer: string }[] {
  if (!isExchange(text)) return [];
  const pieces = text.slice(USER.length).split(ASSISTANT, MOST_PARTINGS + 1);
  return pieces.slice(1).map((_piece, at) => ({
    question: pieces.slice(0, at + 1).join(ASSISTANT),
    answer: text.slice(USER.length + pieces.slice(0, at + 1).join(ASSISTANT).length + ASSISTANT.length),
  }));
}

export function lastAsked(messages: readonly ChatMessage[]): string | undefined {
  return messages.flatMap(askedIn).at(-1);
}

function exchangesIn(messages: readonly ChatMessage[]): string[] {
  let question: string | undefined;
  return messages.flatMap((message) => {
    question = askedIn(message).at(-1) ?? question;
    return message.role === "assistant" ? (exchangeText(question, messageText(message)) ?? []) : [];
  });
}

function askedIn(message: ChatMessage): readonly string[] {
  if (message.role !== "user") return [];
  const question = plainText(messageText(message));
  return question === "" ? [] : [question];
}

function plainText(text: string): string {
  return withoutSections(text).trim();
}

/** How many messages on each side locate a message. */
const NEAR = 2;

/** Drops exchanges that the conversation's client changed or removed, if plain text: a memory must not bring a redacted message back. */
export function withoutReplaced(resolution: Resolution, { conversation, turns, rest }: RecalledHistory): Resolution {
  let history: HistoryPlaces | undefined;
  const isReplaced = (exchange: string) => {
    history ??= new HistoryPlaces(conversation, [...turns.flatMap(({ turn }) => turn.meant), ...rest.meant]);
    const now = history;
    return exchangeParts(exchange).some(({ question, answer }) => {
      const asked = meaningOf({ role: "user", content: question });
      const answered = meaningOf({ role: "assistant", content: answer });
      for (const { before, after } of conversation.saidAround(asked, NEAR)) {
        if (now.isReplaced(asked, before, after)) return true;
        if (after[0] === answered && now.isReplaced(answered, [...before, asked].slice(-NEAR), after.slice(1)))
          return true;
      }
      return false;
    });
  };
  const isOutdated = ({ text }: StoredBlock) => isExchange(text) && isReplaced(text);
  const outdated = new Set(resolution.blocks.filter(isOutdated).map(({ label }) => label));
  if (outdated.size === 0) return resolution;
  return {
    ...resolution,
    blocks: resolution.blocks.filter(({ label }) => !outdated.has(label)),
    memories: resolution.memories.filter(({ label }) => !outdated.has(label)),
    replaced: resolution.memories.filter(({ label }) => outdated.has(label)).map(({ memoryId }) => memoryId),
    leftOut: [...resolution.leftOut, ...outdated],
  };
}

class HistoryPlaces {
  readonly #places: ReadonlyMap<Digest | undefined, readonly number[]>;
  readonly #asked = new Set<Digest | undefined>();

  constructor(
    conversation: Conversation,
    private readonly history: readonly Digest[],
  ) {
    this.#places = groupBy(history.keys(), (at) => history[at]);
    for (const { meant, promptTokens } of conversation.turns) if (promptTokens > 0) this.#asked.add(meant.at(-1));
    this.#asked.add(history.at(-1));
  }

  /**
   * Whether another message replaced this one. Two neighbours on one side prove it. One does only if the other message is no known question:
   * answers repeat, so a question may follow the same answer elsewhere. What a window cut has no place.
   */
  isReplaced(meaning: Digest, before: readonly Digest[], after: readonly Digest[]): boolean {
    if (this.#places.has(meaning)) return false;
    return this.#isMissing(before.toReversed(), 1) || this.#isMissing(after, -1);
  }

  /** @param beside the messages on one side, the nearest first; `step` leads from them to the place */
  #isMissing(beside: readonly Digest[], step: 1 | -1): boolean {
    return beside.some((meaning, distance) =>
      (this.#places.get(meaning) ?? []).some((at) => {
        const place = at + step * (distance + 1);
        const isThere = (other: Digest, n: number) => this.history[place - step * (n + 1)] === other;
        const isSure = beside.length === NEAR && beside.every(isThere);
        return place in this.history && (isSure || !this.#asked.has(this.history[place]));
      }),
    );
  }
}

/** Which texts are given once: equal memories (`exact`), also contained ones (`contained`), also parts of tools' results (`spans`). */
export const DEDUPE_NAMES = ["exact", "contained", "spans"] as const;
export type DedupeName = (typeof DEDUPE_NAMES)[number];
const DEFAULT_DEDUPE: DedupeName = "contained";

/**
 * Drops memories that the prompt contains: blocks whose sentences are consecutive in another block or the question, and exchanges in its messages.
 * The longer text stays; of equal ones that in the prompt, else the lowest label. Blocks of the prompt, and those that supersede one, always stay.
 * A dropped memory gets the remaining block's label, or is in `said`. With `exact` only texts of untrusted origins are dropped.
 */
export function withoutRepeats(
  register: BlockRegister,
  resolution: Resolution,
  standing: Standing,
  superseded: SupersededLabels,
  messages: readonly ChatMessage[],
  dedupe: DedupeName = DEFAULT_DEDUPE,
): Resolution {
  const outdated = new Set([...standing.replaced.keys(), ...[...superseded.values()].flat()]);
  const given =
    outdated.size === 0 ? standing.given : new Set([...standing.given].filter((label) => !outdated.has(label)));
  const isOnce = (label: Label) => dedupe !== "exact" || register.isUntrusted(label);
  const fresh = resolution.blocks.filter(({ label }) => !given.has(label) && !superseded.has(label) && isOnce(label));
  if (fresh.length === 0) return resolution;
  const wanted = new Set(fresh.map(({ label }) => register.comparedOf(label).whole));
  const inPrompt = whoSays(wanted, given, register);
  const requested = whoSays(
    wanted,
    resolution.blocks.map(({ label }) => label),
    register,
  );
  const question = messages.at(-1);
  const asked = new Set(question?.role === "user" ? comparedText(messageText(question)).runs : []);
  let history: ReadonlySet<string> | undefined;
  const isInHistory = (text: string) => {
    history ??= new Set(exchangesIn(messages).map(canonicalText));
    return history.has(text);
  };
  const insteadOf = new Map<Label, Label | null>();
  // The containing text may be dropped itself, if messages contain it.
  const final = (label: Label): Label | null => {
    const instead = insteadOf.get(label);
    return instead === undefined ? label : instead === null ? null : final(instead);
  };
  for (const { label } of fresh) {
    const { whole } = register.comparedOf(label);
    if (whole === "") continue;
    const isSaid = asked.has(whole) || (isExchange(register.textOf(label)) && isInHistory(register.textOf(label)));
    const instead = isSaid ? null : (inPrompt.get(whole) ?? requested.get(whole) ?? label);
    if (instead !== label) insteadOf.set(label, instead);
  }
  if (insteadOf.size === 0) return resolution;
  return replaced(register, resolution, new Map([...insteadOf.keys()].map((label) => [label, final(label)])));
}

function replaced(
  register: BlockRegister,
  resolution: Resolution,
  insteadOf: ReadonlyMap<Label, Label | null>,
): Resolution {
  const contained: MemoryId[] = [];
  const said: MemoryId[] = [];
  const memories = resolution.memories.flatMap((memory): RequestedMemory[] => {
    const instead = insteadOf.get(memory.label);
    if (instead === undefined) return [memory];
    if (instead === null) {
      said.push(memory.memoryId);
      return [];
    }
    contained.push(memory.memoryId);
    return [{ ...memory, label: instead }];
  });
  const leftOut = [...resolution.leftOut, ...insteadOf.keys()];
  return { ...withMemories(register, resolution, memories), contained, said, leftOut };
}

function withMemories(
  register: BlockRegister,
  resolution: Resolution,
  memories: readonly RequestedMemory[],
): Resolution {
  const labels = new Set(memories.map(({ label }) => label));
  return { ...resolution, memories, blocks: [...labels].map((label) => register.get(label) as StoredBlock) };
}

/** The longest block that contains each text; ties go to the lowest label. */
function whoSays(
  wanted: ReadonlySet<string>,
  labels: Iterable<Label>,
  register: BlockRegister,
): ReadonlyMap<string, Label> {
  const found = new Map<string, Label>();
  for (const label of labels) {
    const { runs, sentences } = register.comparedOf(label);
    for (const run of runs) {
      if (!wanted.has(run)) continue;
      const best = found.get(run);
      const most = best === undefined ? -1 : register.comparedOf(best).sentences;
      if (best === undefined || sentences > most || (sentences === most && label < best)) found.set(run, label);
    }
  }
  return found;
}

/** Replaces a memory by a block of the prompt with the same words, dated or not. */
export function asGiven(register: BlockRegister, resolution: Resolution, { given, replaced }: Standing): Resolution {
  if (given.size === 0) return resolution;
  const memories = resolution.memories.map((memory) => {
    const { label, memoryId } = memory;
    if (given.has(label)) return memory;
    // Superseded for another memory that shares it: the prompt will declare it replaced.
    const isOutdated = (other: Label) => replaced.has(other) || register.successor(other) !== null;
    const standing = register.sameWordsAs(memoryId, label).find((other) => given.has(other) && !isOutdated(other));
    return standing === undefined ? memory : { ...memory, label: standing };
  });
  if (memories.every((memory, at) => memory === resolution.memories[at])) return resolution;
  return withMemories(register, resolution, memories);
}
