/*
 * Conditions of a search on metadata, in Mem0's form: `{ topic: "food", year: { gte: 2025 }, OR: [{ … }, { … }] }`.
 */

type Conditions = Readonly<Record<string, unknown>>;

/** Conditions whose `NOT` has a list: the platform takes one filter there, too, the open-source Mem0 does not. */
export function withLists(filters: Conditions): Conditions {
  const inList = (one: unknown) => (isObject(one) ? withLists(one) : one);
  const entries = Object.entries(filters).map(([name, condition]): [string, unknown] => {
    const given: unknown = name === "NOT" && !Array.isArray(condition) ? [condition] : condition;
    return [name, Array.isArray(given) ? given.map(inList) : given];
  });
  return Object.fromEntries(entries);
}

/**
 * Conditions as the embedded store reads them, one operator an entry, since it overlooks a second one. Mem0 itself would flatten `AND`, so
 * that the last condition on a field counted alone, and takes nothing nested; `$and`, `$or` and `$not` reach its store as they are.
 */
export function storeConditions(filters: Conditions): { readonly $and: readonly Conditions[] } {
  return { $and: Object.entries(filters).flatMap(([name, condition]) => storeEntries(name, condition)) };
}

function storeEntries(name: string, condition: unknown): readonly Conditions[] {
  if (name === "AND") return listed(condition);
  if (name === "OR") return [{ $or: listed(condition) }];
  if (name === "NOT") return [{ $not: listed(condition) }];
  if (!isObject(condition)) return [{ [name]: condition }];
  // The platform's form of conditions on metadata.
  if (name === "metadata") return [storeConditions(condition)];
  return Object.entries(condition).map(([operator, value]) => ({ [name]: { [operator]: value } }));
}

/** One filter may stand for a list of one. */
function listed(given: unknown): readonly Conditions[] {
  return (Array.isArray(given) ? given : [given]).filter(isObject).map(storeConditions);
}

function isObject(value: unknown): value is Conditions {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
