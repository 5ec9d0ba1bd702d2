import { isObject, type JsonObject } from "../core/text/json.js";
import type { Mem0Item } from "./mem0-answer.js";

/** Wraps `NOT` in a list: the platform also takes one filter there, the open-source Mem0 does not. */
export function withLists(filters: JsonObject): JsonObject {
  const inList = (one: unknown) => (isObject(one) ? withLists(one) : one);
  const entries = Object.entries(filters).map(([name, condition]): [string, unknown] => {
    const given: unknown = name === "NOT" && !Array.isArray(condition) ? [condition] : condition;
    return [name, Array.isArray(given) ? given.map(inList) : given];
  });
  return Object.fromEntries(entries);
}

/** Mem0 would flatten `AND`, so that only the last condition on a field counted. Its store ignores a second operator of an entry. */
export function storeConditions(filters: JsonObject): { readonly $and: readonly JsonObject[] } {
  return { $and: Object.entries(filters).flatMap(([name, condition]) => storeEntries(name, condition)) };
}

function storeEntries(name: string, condition: unknown): readonly JsonObject[] {
  if (name === "AND") return listed(condition);
  if (name === "OR") return [{ $or: listed(condition) }];
  if (name === "NOT") return [{ $not: listed(condition) }];
  if (!isObject(condition)) return [{ [name]: condition }];
  // The platform's form of conditions on metadata.
  if (name === "metadata") return [storeConditions(condition)];
  return Object.entries(condition).map(([operator, value]) => ({ [name]: { [operator]: value } }));
}

function listed(given: unknown): readonly JsonObject[] {
  return (Array.isArray(given) ? given : [given]).filter(isObject).map(storeConditions);
}

type Verdict = boolean | null;

/** Mem0's own fields; an item has them in another form, or not at all. */
const NO_METADATA: ReadonlySet<string> = new Set([
  ...["id", "memory", "text", "data", "hash", "score", "role", "actor_id", "attributed_to", "attributedTo"],
  ...["created_at", "createdAt", "updated_at", "updatedAt", "timestamp", "expiration_date", "expirationDate"],
  ...["categories", "keywords", "memory_ids", "feedback", "feedback_reason", "text_lemmatized", "textLemmatized"],
]);

/** Whether a found item breaks conditions in every store of Mem0's. Stores differ in lists, in numbers and dates as text, and in missing values. */
export function breaks(filters: JsonObject, item: Mem0Item): boolean {
  return verdictOn(filters, item) === false;
}

function verdictOn(filters: JsonObject, item: Mem0Item): Verdict {
  return all(
    Object.entries(filters).map(([name, condition]) => {
      const each = () => (Array.isArray(condition) ? condition : [condition]).filter(isObject);
      if (name === "AND") return all(each().map((one) => verdictOn(one, item)));
      if (name === "OR") return some(each().map((one) => verdictOn(one, item)));
      if (name === "NOT") return all(each().map((one) => not(verdictOn(one, item))));
      if (name === "metadata" && isObject(condition)) return verdictOn(condition, item);
      return verdictOnField(name, condition, item);
    }),
  );
}

function verdictOnField(name: string, condition: unknown, { metadata, ...item }: Mem0Item): Verdict {
  // Null means that a memory has no metadata; a source that omits the field does not say.
  if (metadata === undefined) return null;
  const shown = isObject(metadata) && Object.hasOwn(metadata, name) ? metadata[name] : null;
  if (shown == null && (NO_METADATA.has(name) || name.includes(".") || Object.hasOwn(item, name))) return null;
  if (Array.isArray(condition)) return compared("in", shown, condition);
  if (!isObject(condition)) return condition === "*" ? shown != null || null : equal(shown, condition);
  return all(Object.entries(condition).map(([operator, wanted]) => compared(operator, shown, wanted)));
}

function compared(operator: string, shown: unknown, wanted: unknown): Verdict {
  switch (operator) {
    case "eq":
      return equal(shown, wanted);
    case "in":
      return Array.isArray(wanted) ? some(wanted.map((one) => equal(shown, one))) : null;
    case "ne":
    case "nin":
      return shown == null ? null : not(compared(operator === "ne" ? "eq" : "in", shown, wanted));
    case "contains":
    case "icontains":
      return including(shown, wanted, operator === "contains");
    default:
      return shown == null ? false : ordered(operator, shown, wanted);
  }
}

function equal(shown: unknown, wanted: unknown): Verdict {
  if (wanted === null) return shown == null ? null : false;
  if (shown == null) return false;
  if (Array.isArray(shown)) return shown.some((one) => equal(one, wanted) !== false) ? null : false;
  if (typeof shown === typeof wanted) return shown === wanted;
  return String(shown) === String(wanted) ? null : false;
}

function including(shown: unknown, wanted: unknown, isExact: boolean): Verdict {
  if (shown == null) return false;
  if (typeof shown !== "string" || typeof wanted !== "string") return null;
  if (!shown.toLowerCase().includes(wanted.toLowerCase())) return false;
  return isExact && !shown.includes(wanted) ? null : true;
}

function ordered(operator: string, shown: unknown, wanted: unknown): Verdict {
  const by = (a: string | number, b: string | number) => ORDERS.get(operator)?.(a, b) ?? null;
  if (typeof shown === "number" && typeof wanted === "number") return by(shown, wanted);
  if (typeof shown !== "string" || typeof wanted !== "string") return null;
  const verdict = by(shown, wanted);
  const readings = [Number, Date.parse].map((read): Verdict => {
    const [a, b] = [read(shown), read(wanted)];
    return Number.isNaN(a) || Number.isNaN(b) ? verdict : by(a, b);
  });
  return readings.every((one) => one === verdict) ? verdict : null;
}

const ORDERS: ReadonlyMap<string, (a: string | number, b: string | number) => boolean> = new Map([
  ["gt", (a, b) => a > b],
  ["gte", (a, b) => a >= b],
  ["lt", (a, b) => a < b],
  ["lte", (a, b) => a <= b],
]);

function all(verdicts: readonly Verdict[]): Verdict {
  return verdicts.includes(false) ? false : verdicts.includes(null) ? null : true;
}

function some(verdicts: readonly Verdict[]): Verdict {
  return not(all(verdicts.map(not)));
}

function not(verdict: Verdict): Verdict {
  return verdict === null ? null : !verdict;
}
