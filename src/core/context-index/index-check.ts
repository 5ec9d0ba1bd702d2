import { checkListByUse, isLeaf, ownTokens } from "./index-node.js";
import type { PrefixForest } from "./prefix-forest.js";

/** Throws if the forest breaks an invariant, or has more than `maxNodes` nodes. */
export function checkForest(forest: PrefixForest, maxNodes: number): void {
  let tokens = 0;
  for (const [id, place] of forest.places) {
    const { row, above, children, continuations } = place;
    const isRoot = row.anchor !== null;
    if (!isRoot && above === null) throw new Error(`node ${id}: an anchor belongs to a root and to nothing else`);
    if (isRoot !== (row.run.length === 0)) throw new Error(`node ${id}: only a root has no blocks`);
    if (row.live === 0 && isLeaf(place)) throw new Error(`node ${id}: dead leaf`);
    if (!isRoot && row.live === 0 && children.size === 1 && continuations.size === 0)
      throw new Error(`node ${id}: unary chain`);
    if ((above?.row.id ?? null) !== row.parent) throw new Error(`node ${id}: linked wrongly`);
    if (above !== null && (above.row.lastUsed < row.lastUsed || above.row.usedAt < row.usedAt))
      throw new Error(`node ${id}: younger than what it needs`);
    for (const [first, child] of children) {
      if (child.row.run[0] !== first || child.above !== place) throw new Error(`node ${child.row.id}: linked wrongly`);
      if (child.row.position >= row.nextPosition) throw new Error(`node ${child.row.id}: position was never given`);
    }
    for (const root of continuations) if (root.above !== place) throw new Error(`node ${root.row.id}: linked wrongly`);
    tokens += ownTokens(place);
  }
  for (const root of forest.anchors.values()) checkListByUse(root);
  if (tokens !== forest.tokens) throw new Error(`${forest.tokens} tokens counted, ${tokens} there`);
  if (forest.places.size > maxNodes) throw new Error(`${forest.places.size} nodes, more than ${maxNodes}`);
}
