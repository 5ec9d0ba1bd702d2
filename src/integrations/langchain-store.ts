/** The part of LangGraph's `BaseStore` that is used. */
export interface LangGraphStore {
  search(
    namespacePrefix: string[],
    options?: { query?: string; limit?: number; filter?: Record<string, unknown> },
  ): Promise<readonly StoredItem[]>;
  get(namespace: string[], key: string): Promise<StoredItem | null>;
}

export interface StoredItem {
  readonly namespace: readonly string[];
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface StoreSourceOptions {
  /** Labels of a user's memories: one is `{userId}`, one may be `{agentId}`. Without an agent, a search covers all below the labels before it. */
  readonly namespace: readonly string[];
  /** A value's text. Default: its field `text`. An item without text is no memory. */
  readonly text?: (value: StoredItem["value"]) => unknown;
}

export interface StoreSource {
  search(
    query: string,
    options: { readonly filters: Readonly<Record<string, unknown>>; readonly topK: number },
  ): Promise<StoredMemory[]>;
  /** Rejects for an id that no search gave. */
  get(id: string): Promise<StoredMemory | null>;
}

/** An item in Mem0's form. `id`: its labels and key as JSON; `metadata`: the value's other fields. */
export interface StoredMemory {
  readonly id: string;
  readonly memory: unknown;
  readonly user_id: string | null;
  readonly agent_id: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * Uses a LangGraph `BaseStore` as memprefix's source, read-only. Throws a `TypeError` unless exactly one label is `{userId}`.
 *
 * @example
 * ```ts
 * const memprefix = createMemprefix({ source: storeSource(store, { namespace: ["memories", "{userId}"] }) });
 * ```
 */
export function storeSource(
  store: LangGraphStore,
  { namespace: labels, text = (value) => value["text"] }: StoreSourceOptions,
): StoreSource {
  if (labels.filter((label) => label === USER).length !== 1)
    throw new TypeError(`namespace must have one label ${USER}: without it, everybody would be searched`);
  const memoryOf = ({ namespace, key, value, createdAt, updatedAt }: StoredItem): StoredMemory => {
    const memory = text(value);
    return {
      id: JSON.stringify([...namespace, key]),
      memory,
      user_id: nameIn(namespace, USER),
      agent_id: nameIn(namespace, AGENT),
      created_at: createdAt,
      updated_at: updatedAt,
      metadata: Object.fromEntries(Object.entries(value).filter(([, one]) => one !== memory)),
    };
  };
  const nameIn = (namespace: readonly string[], label: string) => namespace[labels.indexOf(label)] ?? null;
  const isBelow = ({ namespace }: StoredItem) =>
    labels.every((label, at) => label === USER || label === AGENT || label === namespace[at]);

  return {
    async search(query, { filters: { user_id, agent_id, run_id, app_id, ...conditions }, topK }) {
      if (run_id !== undefined || app_id !== undefined) throw unsupported("a store knows no runs and applications");
      const names = new Map([
        [USER, user_id],
        [AGENT, agent_id],
      ]);
      const prefix: string[] = [];
      for (const label of labels) {
        const name = names.has(label) ? names.get(label) : label;
        if (typeof name !== "string") break;
        prefix.push(name);
      }
      if (prefix.length <= labels.indexOf(USER))
        throw unsupported(`${USER} stands behind ${AGENT}, and no agent is named`);
      const filter = storeFilter(conditions);
      const found = await store.search(prefix, { query, limit: topK, ...(filter && { filter }) });
      return found.filter(isBelow).map(memoryOf);
    },
    async get(id) {
      const labelsAndKey = JSON.parse(id) as string[];
      const item = await store.get(labelsAndKey.slice(0, -1), labelsAndKey.at(-1) ?? "");
      return item && memoryOf(item);
    },
  };
}

const USER = "{userId}";
const AGENT = "{agentId}";

const COMPARISONS: ReadonlySet<string> = new Set(["eq", "ne", "gt", "gte", "lt", "lte"]);

function storeFilter(conditions: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined {
  const entries = Object.entries(conditions);
  return entries.length === 0
    ? undefined
    : Object.fromEntries(entries.map(([name, one]) => [name, condition(name, one)]));
}

function condition(name: string, given: unknown): unknown {
  if (name === "AND" || name === "OR" || name === "NOT" || Array.isArray(given))
    throw unsupported(`a store has no ${Array.isArray(given) ? "lists" : name} in its filters`);
  if (typeof given !== "object" || given === null) return given;
  return Object.fromEntries(
    Object.entries(given).map(([operator, value]) => {
      if (!COMPARISONS.has(operator)) throw unsupported(`a store's filters do not compare by ${operator}`);
      return [`$${operator}`, value];
    }),
  );
}

/** memprefix's warning has the error's name. */
function unsupported(message: string): Error {
  return Object.assign(new Error(message), { name: "UnsupportedSearchError" });
}
