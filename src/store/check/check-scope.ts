import { type RenderedWords, type StoredScope, WITHDRAWN } from "../../core/index.js";

/** Checks blocks, versions and index nodes against each other: every reference resolves, nothing is there twice. */
export function* checkRows({ counters, bankedTokens, register, nodes }: StoredScope): Generator<string> {
  if (bankedTokens < 0) yield "its memory bank is below zero";
  const labels = new Set(register.blocks.map(({ label }) => label));
  const lengths = new Map(register.blocks.map(({ label, text }) => [label, text.length]));
  const digests = new Set<string>();
  for (const { label, textDigest, supersededBy } of register.blocks) {
    if (label >= counters.nextLabel) yield `block [${label}] has a label past the scope's counter`;
    if (digests.has(textDigest)) yield `block [${label}] has the same text as another block`;
    digests.add(textDigest);
    if (supersededBy !== null && supersededBy !== WITHDRAWN && !labels.has(supersededBy))
      yield `block [${label}] is superseded by a block that is missing`;
  }
  const current = new Map<string, number>();
  const held = new Set<number>();
  for (const { memoryId, label, current: isCurrent, rendered } of register.versions) {
    if (label !== WITHDRAWN && !labels.has(label))
      yield `a memory version refers to block [${label}], which is missing`;
    else if (rendered !== undefined && !isWithin(rendered, lengths.get(label) ?? 0))
      yield `block [${label}] is shorter than its memory's own words`;
    held.add(label);
    current.set(memoryId, (current.get(memoryId) ?? 0) + (isCurrent ? 1 : 0));
    if (register.forgotten.includes(memoryId)) yield `block [${label}] belongs to a forgotten memory`;
  }
  if ([...current.values()].some((count) => count !== 1)) yield "a memory does not have exactly one current version";
  for (const label of labels) if (!held.has(label)) yield `block [${label}] belongs to no memory`;
  for (const { id, run } of nodes) {
    if (id >= counters.nextNode) yield `index node ${id} has an id past the scope's counter`;
    for (const label of run)
      if (!labels.has(label)) yield `index node ${id} refers to block [${label}], which is missing`;
  }
}

function isWithin({ start, length }: RenderedWords, textLength: number): boolean {
  return start >= 0 && length > 0 && start + length <= textLength;
}
