import type { AgentId, ConversationId, UsageNoteKind, UserId } from "../../core/index.js";
import type {
  ConversationReuse,
  GroupFilter,
  KeptNote,
  KeptUsage,
  ReuseOrder,
  ReuseSums,
  UsageFilter,
  UsageKey,
  UsagePage,
  UsageView,
  UserReuse,
  WindowMisses,
  WindowSums,
} from "../api/usage-log.js";
import type { Dialect, NamedStatement } from "../database/sql.js";
import type { GroupRow } from "./accounting.js";
import { type MeasuredSum, REUSE_COLUMNS, spanOf, windowMisses, windowSums } from "./usage-figures.js";
import type { RowOf, RunQuery, UsageDatabase } from "./usage-tables.js";
import { agentOf, keptPrompt, PROMPT_COLUMNS, PROMPT_KEY, PROMPT_NAMES, type PromptRow } from "./usage-tables.js";

/** Most notes of a window. */
const MAX_NOTES = 200;
/** Most prompts that a page of a rare filter looks at. */
const MAX_SCANNED = 10_000;

/** Conditions that hold where their parameter is null. */
const given = (conditions: Readonly<Record<string, string>>) =>
  Object.entries(conditions)
    .map(([parameter, condition]) => `and (cast(${parameter} as text) is null or ${condition})`)
    .join(" ");

/** The groups of a view: its tenant, model, engine and layout. */
const GROUPS_OF = `from usage_groups g where g.tenant = $1 ${given({ $2: "g.model = $2", $3: "g.engine = $3", $4: "g.layout = $4" })}`;

/** {@link ReuseSums} of owners `o`, and whose they are. */
const REUSE = `o.name as "userId", o.agent, o.conversation as "conversationId", o.last_at as "lastAt",
  ${Object.entries(REUSE_COLUMNS)
    .map(([name, column]) => `o.${column} as "${name}"`)
    .join()}`;
/** The share that the worst are found by: of those with enough tokens. What was not reported counts as expected. */
const SHARE = `case when o.shared_reported_prompt_tokens >= 10000
    then cast(o.shared_reported_cached_tokens as double precision) / o.shared_reported_prompt_tokens
  when o.shared_reported_prompt_tokens = 0 and o.shared_prompt_tokens >= 10000
    then cast(o.shared_expected_tokens as double precision) / o.shared_prompt_tokens end`;
const ORDERS: Readonly<Record<ReuseOrder, string>> = {
  missed_tokens: "order by o.missed_tokens desc, o.last_at desc, o.name, o.conversation",
  cached_share: `and ${SHARE} is not null order by ${SHARE}, o.last_at desc, o.name, o.conversation`,
  last_at: "order by o.last_at desc, o.name, o.conversation",
};

/** Where a page looks for prompts: one index serves each filter. */
const SOURCES = {
  tenant: "p.tenant = $3",
  user: "p.user_id = $3",
  conversation: "p.conversation_id = $3",
  group: "p.group_id = $3",
  planned: "p.tenant = $3 and p.planned_cause = $4",
  unserved: "p.tenant = $3 and p.unserved_cause = $4",
} as const;
type Source = keyof typeof SOURCES;

/** A prompt that a page looks at. */
interface Scanned {
  readonly id: number;
  readonly number: number;
  readonly groupId: number;
  readonly planned: string | null;
  readonly unserved: string | null;
}

type ReuseRow = ReuseSums & {
  readonly userId: UserId;
  readonly agent: string;
  readonly conversationId: ConversationId;
};

function statementsOf({ rows, among }: Dialect) {
  const statement = (name: string, text: string): NamedStatement => ({ name: `usage_read_${name}`, text });
  const each = <K extends string>(
    names: Readonly<Record<K, string>>,
    make: (text: string, name: K) => string,
    kind: string,
  ) =>
    Object.fromEntries(
      Object.entries<string>(names).map(([name, text]) => [name, statement(`${kind}_${name}`, make(text, name as K))]),
    ) as Readonly<Record<K, NamedStatement>>;
  const prompts = `select ${PROMPT_COLUMNS} from usage_owners u cross join usage_prompts p ${PROMPT_NAMES}
    where u.id = p.user_id and g.id = p.group_id and u.conversation = ''`;
  const owners = (where: string) => `select ${REUSE} from usage_owners o where o.tenant = $1 and ${where}`;
  return {
    groups: statement("groups", `select g.id, g.tenant, g.model, g.engine, g.layout ${GROUPS_OF} order by g.id`),
    sums: statement(
      "sums",
      `select s.start - s.start % $5 as at, s.group_id as "groupId", s.measure, sum(s.value) as value from usage_sums s
       where s.group_id ${among(`select g.id ${GROUPS_OF}`)} and s.start >= $6 and s.start < $7 group by 1, 2, 3`,
    ),
    notes: statement(
      "notes",
      `select * from usage_notes where tenant = $1 and at >= $2 and at < $3 order by at desc, id desc limit ${MAX_NOTES}`,
    ),
    owners: statement(
      "owners",
      `select o.id from usage_owners o where o.tenant = $1 and o.name = $2 and o.conversation = $4
       ${given({ $3: "o.agent = $3" })}`,
    ),
    scans: each(
      SOURCES,
      (where) =>
        `select p.id, p.number, p.group_id as "groupId", p.planned_cause as planned, p.unserved_cause as unserved
         from usage_prompts p where ${where} and p.number < $1 order by p.number desc limit $2`,
      "scan",
    ),
    page: statement(
      "page",
      `select ${PROMPT_COLUMNS} from ${rows("$1", "f", { id: "bigint" })} cross join usage_prompts p
       cross join usage_owners u ${PROMPT_NAMES} where p.id = f.id and u.id = p.user_id and g.id = p.group_id
       order by p.number desc`,
    ),
    prompt: statement(
      "prompt",
      `${prompts} and u.tenant = $1 and u.name = $2 and u.agent = $3 and ${PROMPT_KEY} = cast(u.id as text) || ' ' || $4`,
    ),
    ofUser: statement("user", `${prompts} and u.tenant = $1 and u.name = $2 order by p.id`),
    users: each(
      ORDERS,
      (order) =>
        `select r.*, (select count(*) from usage_owners c where c.tenant = $1 and c.name = r."userId" and c.agent = r.agent
           and c.conversation <> '') as conversations
         from (${owners("o.conversation = ''")} ${order} limit $2) r`,
      "users",
    ),
    conversations: each(ORDERS, (order) => `${owners("o.conversation <> ''")} ${order} limit $2`, "conversations"),
    conversationsOf: each(
      ORDERS,
      (order) => `${owners("o.conversation <> ''")} and o.name = $3 ${given({ $4: "o.agent = $4" })} ${order} limit $2`,
      "conversations_of",
    ),
    conversation: statement("conversation", owners("o.name = $2 and o.agent = $3 and o.conversation = $4")),
  };
}

/** Reads the usage log of one tenant at a time. */
export class UsageReading {
  readonly #statements: ReturnType<typeof statementsOf>;

  constructor(protected readonly database: UsageDatabase) {
    this.#statements = statementsOf(database.dialect);
  }

  async summary(view: UsageView): Promise<WindowSums> {
    const span = spanOf(view);
    const { groups, notes } = this.#statements;
    const [ofGroups, sums, own, shared] = await this.database.read((query) =>
      Promise.all([
        query<GroupRow>(groups, [view.tenant, ...groupValues(view)]),
        this.#sums(query, view),
        query<RowOf<"usage_notes">>(notes, [view.tenant, span.from, span.to]),
        query<RowOf<"usage_notes">>(notes, ["", span.from, span.to]),
      ]),
    );
    const all = [...own, ...shared].map(noteOf).sort((a, b) => a.at - b.at || a.number - b.number);
    return { ...span, ...windowSums(ofGroups, sums), notes: all.slice(-MAX_NOTES) };
  }

  async misses(view: UsageView): Promise<WindowMisses> {
    const sums = await this.database.read((query) => this.#sums(query, view));
    return { ...spanOf(view), causes: windowMisses(sums) };
  }

  #sums(query: RunQuery, view: UsageView): Promise<MeasuredSum[]> {
    const { from, to, stepMs } = spanOf(view);
    return query<MeasuredSum>(this.#statements.sums, [view.tenant, ...groupValues(view), stepMs, from, to]);
  }

  /** See `UsageLog.prompts`. What an index finds is compared with the rest of the filter, up to a bound. */
  async prompts(filter: UsageFilter, before: number | null, limit: number): Promise<UsagePage> {
    const { tenant, userId, agentId, conversationId, cause, model, engine, layout } = filter;
    const { owners, groups, scans, page } = this.#statements;
    const hasGroup = model !== undefined || engine !== undefined || layout !== undefined;
    const ofOwners = [tenant, userId, agentValue(agentId), conversationId ?? ""];
    const [ownerIds, groupIds] = await this.database.read((query) =>
      Promise.all([
        userId === undefined ? [] : query<{ id: number }>(owners, ofOwners),
        hasGroup ? query<{ id: number }>(groups, [tenant, ...groupValues(filter)]) : [],
      ]),
    );
    const isWanted = new Set(groupIds.map(({ id }) => id));
    const of = (source: Source, ids: readonly { readonly id: number }[]) => ids.map(({ id }) => [source, id] as const);
    let sources: readonly (readonly [source: Source, ...values: unknown[]])[];
    if (userId !== undefined) sources = of(conversationId === undefined ? "user" : "conversation", ownerIds);
    else if (cause !== undefined) sources = [["planned", tenant, cause] as const, ["unserved", tenant, cause] as const];
    else sources = hasGroup ? of("group", groupIds) : [["tenant", tenant]];
    const isRare = (userId !== undefined && (hasGroup || cause !== undefined)) || (cause !== undefined && hasGroup);
    const most = isRare ? MAX_SCANNED : limit + 1;
    const found = await this.database.read((query) =>
      Promise.all(
        sources.map(([source, ...values]) =>
          query<Scanned>(scans[source], [before ?? Number.MAX_SAFE_INTEGER, most, ...values]),
        ),
      ),
    );
    // A prompt may have missed for one cause twice.
    const scanned = [...new Map(found.flat().map((one) => [one.number, one])).values()]
      .sort((a, b) => b.number - a.number)
      .slice(0, most);
    const fits = scanned.filter(
      ({ groupId, planned, unserved }) =>
        (!hasGroup || isWanted.has(groupId)) && (cause === undefined || planned === cause || unserved === cause),
    );
    const ids = fits.slice(0, limit).map(({ id }) => ({ id }));
    const rows = await this.database.read((query) => query<PromptRow>(page, [JSON.stringify(ids)]));
    const last = fits.length > limit ? fits[limit - 1] : scanned.length >= MAX_SCANNED ? scanned.at(-1) : undefined;
    return { rows: rows.map(keptPrompt), next: last?.number ?? null };
  }

  async prompt({ tenant, userId, agentId, requestId }: UsageKey): Promise<KeptUsage | null> {
    const [row] = await this.#all<PromptRow>(this.#statements.prompt, [tenant, userId, agentId ?? "", requestId]);
    return row === undefined ? null : keptPrompt(row);
  }

  async exportUser(tenant: string, userId: UserId): Promise<readonly KeptUsage[]> {
    return (await this.#all<PromptRow>(this.#statements.ofUser, [tenant, userId])).map(keptPrompt);
  }

  async users(tenant: string, order: ReuseOrder, limit: number): Promise<readonly UserReuse[]> {
    type Row = ReuseRow & { readonly conversations: number };
    const rows = await this.#all<Row>(this.#statements.users[order], [tenant, limit]);
    return rows.map(({ conversationId: _, ...row }) => withAgent(row));
  }

  async conversations(
    { tenant, userId, agentId }: Pick<UsageFilter, "tenant" | "userId" | "agentId">,
    order: ReuseOrder,
    limit: number,
  ): Promise<readonly ConversationReuse[]> {
    const { conversations, conversationsOf } = this.#statements;
    const rows = await (userId === undefined
      ? this.#all<ReuseRow>(conversations[order], [tenant, limit])
      : this.#all<ReuseRow>(conversationsOf[order], [tenant, limit, userId, agentValue(agentId)]));
    return rows.map(withAgent);
  }

  async conversation(
    of: Omit<UsageKey, "requestId"> & { readonly conversationId: ConversationId },
  ): Promise<ConversationReuse | null> {
    const values = [of.tenant, of.userId, of.agentId ?? "", of.conversationId];
    const [row] = await this.#all<ReuseRow>(this.#statements.conversation, values);
    return row === undefined ? null : withAgent(row);
  }

  #all<R extends object>(statement: NamedStatement, values: readonly unknown[]): Promise<R[]> {
    return this.database.read((query) => query<R>(statement, values));
  }
}

/** Of a model, an engine and a layout, where they are named. */
function groupValues({ model, engine, layout }: GroupFilter): readonly (string | null)[] {
  return [model ?? null, engine ?? null, layout ?? null];
}

/** As rows have it; null: any. */
function agentValue(agentId: UsageFilter["agentId"]): string | null {
  return agentId === undefined ? null : (agentId ?? "");
}

function withAgent<T extends { readonly agent: string }>({
  agent,
  ...row
}: T): Omit<T, "agent"> & { readonly agentId: AgentId | null } {
  return { ...row, agentId: agentOf(agent) };
}

function noteOf({ tenant, number, at, kind, label, model }: RowOf<"usage_notes">): KeptNote {
  return { tenant: tenant === "" ? null : tenant, number, at, kind: kind as UsageNoteKind, label, model };
}
