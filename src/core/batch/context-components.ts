/**
 * Connected components of contexts, by index: contexts in different components share no block, not even through other contexts. Components
 * in the order of their oldest contexts, contexts ascending. Near linear (union-find).
 */
export function contextComponents(contexts: readonly (readonly number[])[]): number[][] {
  /** Union-find parent: towards the oldest context of the component. */
  const older = Int32Array.from(contexts, (_, at) => at);
  const oldestOf = (context: number) => {
    let at = context;
    for (let next = older[at] as number; next !== at; next = older[at] as number) {
      older[at] = older[next] as number;
      at = next;
    }
    return at;
  };
  const holder = new Map<number, number>();
  for (const [at, context] of contexts.entries()) {
    for (const label of context) {
      const known = holder.get(label);
      if (known === undefined) {
        holder.set(label, at);
        continue;
      }
      const [one, other] = [oldestOf(known), oldestOf(at)];
      older[Math.max(one, other)] = Math.min(one, other);
    }
  }
  const components = new Map<number, number[]>();
  for (let at = 0; at < contexts.length; at++) {
    const oldest = oldestOf(at);
    const component = components.get(oldest);
    if (component === undefined) components.set(oldest, [at]);
    else component.push(at);
  }
  return [...components.values()];
}
