import {
  blockBounds,
  type ChatMessage,
  messageText,
  type PlacedMemory,
  SECTION_OPENING,
  sectionAtStart,
} from "../../core/index.js";

/** ContextPilot's sentences (arXiv 2511.03475, 5.3 and 6), with memprefix's labels. */
export const PAPER_WORDING = {
  order: "Please read the context in the following priority order: {labels} and answer the question.",
  location: "Please refer to {labels} in the previous conversation.",
} as const;
const LOCATION = /\nPlease refer to ((?:\[\d+\])+) in the previous conversation\./;

/**
 * Writes a conversation's sections as ContextPilot does: the ranking as `[2] > [1] > [4]`, before the question, and in place of each duplicate
 * a line that refers to it (Alg. 3). Sections of earlier turns stay as they were written.
 */
export class PaperSections {
  readonly #written = new Map<string, string>();

  /**
   * @param composed what memprefix composed, with {@link PAPER_WORDING}; the newest section begins its last message
   * @param messages the same with its sections wherever the arm has them
   */
  in(
    composed: readonly ChatMessage[],
    blocks: readonly PlacedMemory[],
    messages: readonly ChatMessage[],
  ): readonly ChatMessage[] {
    const newest = composed.at(-1);
    const section = newest === undefined ? null : sectionAtStart(messageText(newest));
    if (section !== null && !this.#written.has(section)) this.#written.set(section, paperSection(section, blocks));
    const written = (text: string) =>
      text.replace(/<memories>\n.*?<\/memories>(?:\n[^\n]+)*/gs, (known) => this.#written.get(known) ?? known);
    return messages.map((message) =>
      typeof message.content === "string" ? { ...message, content: written(message.content) } : message,
    );
  }
}

function paperSection(section: string, blocks: readonly PlacedMemory[]): string {
  const bounds = blockBounds(section);
  const placed = bounds.slice(0, -1).map((from, at) => section.slice(from, bounds[at + 1]));
  const end = section.slice(bounds.at(-1) ?? SECTION_OPENING.length);
  const named = [...(LOCATION.exec(end)?.[1] ?? "").matchAll(/\d+/g)].map(([label]) => Number(label));
  const byRank = blocks.filter(({ rank }) => rank !== null).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
  // Two memories with one text are one block.
  const ranked = new Map(byRank.toReversed().map((block) => [block.label, block]));
  const lines: string[] = [];
  let next = 0;
  for (const { label, placement } of [...ranked.values()].reverse()) {
    if (placement !== "earlier_turn") lines.push(placed[next++] ?? "");
    else if (named.includes(label)) lines.push(`Please refer to [${label}] in the previous conversation.\n`);
  }
  const annotations = end.replace(LOCATION, "").replace(/^Please read .*$/m, (line) => line.replaceAll("][", "] > ["));
  return [SECTION_OPENING, ...lines, ...placed.slice(next), annotations].join("");
}
