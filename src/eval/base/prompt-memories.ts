import {
  type ChatMessage,
  canonicalText,
  isInstruction,
  type Label,
  type MemoryId,
  messageText,
  type PlacedMemory,
  type Plan,
  parseSection,
  type RetrievedMemory,
  renderBlock,
  sectionAtStart,
  type TokenCounter,
} from "../../core/index.js";
import { givenAgain, type ParsedSection, referencesIn, SECTION_OPENING } from "../../core/prompt/section.js";
import { keptIn } from "../../core/text/collections.js";

/** A memory, with the ids of the dialogue turns that it is from. */
export interface EvaluatedMemory {
  readonly text: string;
  readonly evidence: readonly string[];
}

/** All memories of one conversation, numbered from 0: to composers their ids are these numbers, the same in every run. */
export class MemoryList {
  readonly #tokens: readonly number[];

  constructor(
    readonly memories: readonly EvaluatedMemory[],
    countTokens: TokenCounter,
  ) {
    this.#tokens = memories.map(({ text }, at) =>
      countTokens(renderBlock({ label: (at + 1) as Label, replaces: [] }, text)),
    );
  }

  /** Tokens of these memories' lines as memprefix writes them; counted the same way whoever builds a prompt, so that arms compare. */
  tokens(of: readonly number[]): number {
    return of.reduce((sum, at) => sum + (this.#tokens[at] ?? 0), 0);
  }

  retrieved(of: readonly number[]): RetrievedMemory[] {
    return of.map((at) => ({ id: String(at) as MemoryId, text: this.memories[at]?.text ?? "" }));
  }

  /** How many of these dialogue turns are evidence of one of these memories. */
  evidenceIn(of: readonly number[], evidence: readonly string[]): number {
    const there = new Set(of.flatMap((at) => this.memories[at]?.evidence ?? []));
    return evidence.filter((id) => there.has(id)).length;
  }
}

/** Which memories stand in a prompt, by their number in the list of all. */
export interface StandingMemories {
  /** As they stand, carried ones and those of earlier turns included. */
  readonly order: readonly number[];
  readonly carried: readonly number[];
}

/** Follows, prompt by prompt, which memories stand in one user's prompts. Memories are numbered: their ids are those numbers. */
export class PromptMemories {
  /** By label. A block may be that of several memories, with a text that one of them has. */
  readonly #byLabel = new Map<number, Set<number>>();
  readonly #byText = new Map<string, ReadonlySet<number>>();
  #standing: readonly number[] = [];

  /** @param isCut whether histories are cut, so that a memory leaves with its message */
  constructor(
    private readonly list: Pick<MemoryList, "memories">,
    private readonly isCut = false,
  ) {}

  /** The memories of the prompt that was composed last. Every prompt has to be taken: its answer says of which memories its blocks are. */
  take(
    memories: readonly PlacedMemory[],
    plan: Pick<Plan, "freshStart" | "layout" | "retention">,
    messages: readonly ChatMessage[],
  ): StandingMemories {
    for (const { label, memoryId } of memories) {
      const of = keptIn(this.#byLabel, label, () => new Set()).add(Number(memoryId));
      this.#byText.set(canonicalText(this.list.memories[Number(memoryId)]?.text ?? ""), of);
    }
    const carried = memories.filter(({ placement }) => placement === "carried_over");
    // What a cut or a fresh start leaves is read from the prompt.
    const order =
      this.isCut || plan.freshStart ? this.#readFrom(messages) : [...this.#standing, ...inThisTurn(memories)];
    if (plan.layout === "conversation" && plan.retention !== "ephemeral") this.#standing = order;
    return { order, carried: carried.map(({ memoryId }) => Number(memoryId)) };
  }

  #readFrom(messages: readonly ChatMessage[]): readonly number[] {
    return [...new Set(messages.flatMap(blocksIn).flatMap(({ text }) => [...(this.#byText.get(text) ?? [])]))];
  }
}

function inThisTurn(memories: readonly PlacedMemory[]): readonly number[] {
  const placed = memories.filter(({ placement }) => placement !== "earlier_turn");
  return [...new Set(placed.map(({ memoryId }) => Number(memoryId)))];
}

/**
 * Checks a prompt as its reader would: every label that its own annotations name, and every text that they quote, must stand as a memory in
 * the messages that the engine gets. References of earlier turns' annotations were counted with those turns' prompts.
 */
export function countReferences(annotations: readonly string[], messages: readonly ChatMessage[]) {
  const named = annotations
    .map(referencesIn)
    .flatMap(({ labels, quoted }): readonly (number | string)[] => (quoted === null ? labels : [quoted]));
  if (named.length === 0) return { references: 0, referencesResolved: 0 };
  const there = new Set<number | string | null>(
    messages.flatMap(blocksIn).flatMap(({ label, text }) => [label, givenAgain(text)]),
  );
  return { references: named.length, referencesResolved: named.filter((one) => there.has(one)).length };
}

/** The memories that stand in a message, in their order: in instructions anywhere, else at the start, where memprefix puts them. */
export function blocksIn(message: ChatMessage): ParsedSection["blocks"] {
  const text = sectionText(message);
  const found: ParsedSection["blocks"][number][] = [];
  let at = isInstruction(message) ? text.indexOf(SECTION_OPENING) : 0;
  while (at >= 0) {
    const section = sectionAtStart(text.slice(at));
    for (const block of section === null ? [] : (parseSection(section)?.blocks ?? [])) found.push(block);
    at = isInstruction(message) ? text.indexOf(SECTION_OPENING, at + SECTION_OPENING.length) : -1;
  }
  return found;
}

/** Some engines' marks stand between the parts of a message, within a section too; its text is that of the parts in a row. */
function sectionText(message: ChatMessage): string {
  if (!Array.isArray(message.content)) return messageText(message);
  return message.content.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
}
