import type { Label } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";

/** A block as one turn put it into the prompt. */
export interface InjectedBlock {
  readonly label: Label;
  /** Labels in the same prompt that this block supersedes (an updated memory). */
  readonly replaces: readonly Label[];
  /** Written without its label: a single prompt, whose blocks nothing refers to. Of a section all blocks are, or none. */
  readonly isUnlabelled?: true;
}

/** One line after the blocks of a section. */
export type Annotation =
  /** The relevance ranking, best first, because blocks were reordered (docs/internals/algorithms.md, "Annotations"). */
  | { readonly kind: "order"; readonly template: string; readonly labels: readonly Label[] }
  /** The most relevant block again, because blocks without labels were reordered; one label. */
  | { readonly kind: "best"; readonly labels: readonly Label[] }
  /** Retrieved blocks that are earlier in this prompt, best first (Alg. 3). */
  | { readonly kind: "location"; readonly template: string; readonly labels: readonly Label[] }
  /** A memory's current text became, perhaps again, one that this prompt already contains. */
  | { readonly kind: "restored"; readonly label: Label; readonly replaces: readonly Label[] }
  /** Blocks of this prompt whose memories no longer hold, and which no other text replaces. */
  | { readonly kind: "withdrawn"; readonly labels: readonly Label[] };

/**
 * What one turn put into the prompt, as labels: texts are stored once, in the blocks. Rendering is a pure function, so replay is
 * byte-exact, and forgetting a block removes its text everywhere.
 */
export interface Injection {
  readonly blocks: readonly InjectedBlock[];
  readonly annotations: readonly Annotation[];
}

export const NOTHING_INJECTED: Injection = { blocks: [], annotations: [] };

export function isEmptyInjection(injection: Injection): boolean {
  return injection.blocks.length === 0 && injection.annotations.length === 0;
}

/** Whether its blocks are written with their labels; true without blocks. */
export function hasLabels({ blocks }: Pick<Injection, "blocks">): boolean {
  return blocks[0]?.isUnlabelled !== true;
}

/** Every label that occurs in the injection, in any role. */
export function labelsIn(injection: Injection): ReadonlySet<Label> {
  const labels = new Set<Label>();
  for (const block of injection.blocks) {
    labels.add(block.label);
    for (const label of block.replaces) labels.add(label);
  }
  for (const annotation of injection.annotations) {
    if (annotation.kind === "restored") labels.add(annotation.label);
    for (const label of annotation.kind === "restored" ? annotation.replaces : annotation.labels) labels.add(label);
  }
  return labels;
}

/** The injection without some labels: without their blocks, references to them, and annotations that would be empty. */
export function withoutLabels(injection: Injection, forgotten: ReadonlySet<Label>): Injection {
  const keep = (labels: readonly Label[]) => labels.filter((label) => !forgotten.has(label));
  const blocks = injection.blocks
    .filter((block) => !forgotten.has(block.label))
    .map((block) => ({ ...block, replaces: keep(block.replaces) }));
  const annotations = injection.annotations.flatMap((annotation): Annotation[] => {
    if (annotation.kind === "restored") {
      return forgotten.has(annotation.label) ? [] : [{ ...annotation, replaces: keep(annotation.replaces) }];
    }
    const labels = keep(annotation.labels);
    return labels.length === 0 ? [] : [{ ...annotation, labels }];
  });
  return { blocks, annotations };
}

/**
 * Where a turn's section goes: before its question's text; after its tool result, in a user message of its own whose content is a text, or
 * a list of parts if the client's is; or inside the tool result's message, after its text, for engines and chat templates that accept no
 * user message there (Mistral's).
 */
export const SECTION_PLACEMENTS = [
  "in-question",
  "after-tool-result",
  "in-tool-result",
  "after-tool-result-as-parts",
] as const;
export type SectionPlacement = (typeof SECTION_PLACEMENTS)[number];

/** Where memories go after a tool's result, as a caller names it. */
export const TOOL_MEMORIES = ["own_message", "in_result"] as const;
export type ToolMemories = (typeof TOOL_MEMORIES)[number];

/** Whether the section is a message of its own. */
export function isOwnMessage(placement: SectionPlacement): boolean {
  return placement === "after-tool-result" || placement === "after-tool-result-as-parts";
}

/**
 * The placement of a section in a message of its own after the first `count` of a client's plain messages. Its content has the form of the
 * last user message before it, so that it fits the client's message type.
 */
export function ownMessageBehind(messages: readonly ChatMessage[], count = messages.length): SectionPlacement {
  for (let at = count - 1; at >= 0; at--) {
    const message = messages[at];
    if (message?.role === "user")
      return Array.isArray(message.content) ? "after-tool-result-as-parts" : "after-tool-result";
  }
  return "after-tool-result";
}
