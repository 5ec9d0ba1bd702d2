import { batchKnowledge, type ClusterNode, type ComposeInput, type Label, type ScopeState } from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scopes.js";

/** What a scope knows for planning a batch. Blocks are their texts, since labels are assigned only when composing. */
export interface KnownTexts {
  /** What should be cached, least recently used first. */
  readonly cached: readonly KnownSequence[];
  /** What recent requests retrieved, oldest first. */
  readonly recent: readonly (readonly string[])[];
}

/** A sequence of blocks that should be cached, as far as one of the given requests can use it. */
export interface KnownSequence {
  readonly texts: readonly string[];
  /** The scope's request counter at the last use. */
  readonly lastUsed: number;
}

/** A node of a scope's cluster tree, its blocks by their texts. */
export interface ClusteredTexts extends Omit<ClusterNode, "blocks"> {
  readonly blocks: readonly string[];
}

/** What the scope knows for planning requests with these texts after the input's messages. A text without a block cannot be cached. */
export function knownTexts(state: ScopeState, input: ComposeInput, texts: readonly (readonly string[])[]): KnownTexts {
  const { register } = state;
  const wanted = texts.map((ofRequest) => new Set(ofRequest.flatMap((text) => register.withText(text) ?? [])));
  const { cached, recent } = batchKnowledge(state, input, wanted);
  return {
    cached: cached.map(({ labels, lastUsed }) => ({ texts: textsOf(state, labels), lastUsed })),
    recent: recent.map((labels) => textsOf(state, labels)),
  };
}

export function clustersOf({ state }: WorkingScope): readonly ClusteredTexts[] {
  const nodes = state.published.clusters.stored();
  return nodes.map((node) => ({ ...node, blocks: textsOf(state, node.blocks) }));
}

/** Stores the tree that a batch's planner made of {@link clustersOf}. Texts that no prompt was given, and forgotten ones, are left out. */
export async function replaceClusters(working: WorkingScope, nodes: readonly ClusteredTexts[]): Promise<void> {
  if (!working.isStored) return;
  const { register, published, clock } = working.state;
  const unknown = new Map<string, Label>();
  const labelOf = (text: string): Label =>
    register.withText(text) ?? keptIn(unknown, text, () => (register.nextLabel + unknown.size) as Label);
  const labelled = nodes.map((node) => ({ ...node, blocks: node.blocks.map(labelOf) }));
  published.clusters.replace(labelled, clock);
  published.clusters.forget(new Set(unknown.values()));
  await working.commit((held) => held.commitChanges(deltaOf(working.state)));
}

export function textsOf({ register }: Pick<ScopeState, "register">, labels: Iterable<Label>): string[] {
  return [...labels].flatMap((label) => register.get(label)?.text ?? []);
}
