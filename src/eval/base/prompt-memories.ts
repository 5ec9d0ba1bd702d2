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
import { type ParsedText, SECTION_OPENING } from "../../core/prompt/section.js";
import { append, keptIn } from "../../core/text/collections.js";

export interface EvaluatedMemory {
  readonly text: string;
  readonly evidence: readonly string[];
}

/** All memories of one conversation, numbered from 0. These numbers are their ids in every prompt and every run. */
export class MemoryList {
  readonly #tokens: readonly number[];

  constructor(
    readonly memories: readonly EvaluatedMemory[],
    countTokens: TokenCounter,
  ) {
    this.#tokens = memories.map(({ text }, at) => countTokens(renderBlock({ label: (at + 1) as Label }, text)));
  }

  /** Tokens of these memories' lines as memprefix writes them, whoever builds the prompt, so that arms are comparable. */
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

export interface StandingMemories {
  /** The memories of a prompt, by number, in its order; includes carried ones and those of earlier turns. */
  readonly order: readonly number[];
  readonly carried: readonly number[];
}

/** Tracks which memories one user's prompts hold, prompt by prompt. */
export class PromptMemories {
  /** By label. Several memories with the same text share a block. */
  readonly #byLabel = new Map<number, Set<number>>();
  readonly #byText = new Map<string, ReadonlySet<number>>();
  #standing: readonly number[] = [];

  /** @param isCut whether histories are cut, so that a memory leaves with its message */
  constructor(
    private readonly list: Pick<MemoryList, "memories">,
    private readonly isCut = false,
  ) {}

  /** The memories of the newest prompt. Call it for every prompt: later ones refer to blocks of earlier ones. */
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
    // A cut or a fresh start drops memories, so the prompt itself is read.
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

/** The memories of a message, in order, updates too: anywhere in instructions, at the start of other messages. */
export function blocksIn(message: ChatMessage): readonly ParsedText[] {
  const text = sectionText(message);
  const found: ParsedText[] = [];
  let at = isInstruction(message) ? text.indexOf(SECTION_OPENING) : 0;
  while (at >= 0) {
    const section = sectionAtStart(text.slice(at));
    const parsed = section === null ? null : parseSection(section);
    if (parsed !== null) append(found, [...parsed.blocks, ...parsed.updates]);
    at = isInstruction(message) ? text.indexOf(SECTION_OPENING, at + SECTION_OPENING.length) : -1;
  }
  return found;
}

/** Some engines' marks split a section into several parts of a message; its text is those parts joined. */
function sectionText(message: ChatMessage): string {
  if (!Array.isArray(message.content)) return messageText(message);
  return message.content.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
}
