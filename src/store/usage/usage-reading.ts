import type { AgentId, ConversationId, UsageNoteKind, UserId } from "../../core/index.js";
import type {
  ConversationReuse,
  FollowedUsage,
  GroupFilter,
  KeptNote,
  KeptUsage,
  ReuseOrder,
  ReuseSums,
  UsageChanges,
  UsageFilter,
  UsageKey,
  UsagePage,
  UsageView,
  UserReuse,
  WindowMisses,
  WindowSums,
} from "../api/usage-log.js";
import type { NamedStatement } from "../postgres/connections.js";
import type { GroupRow } from "./accounting.js";
import { agentOf, keptPrompt, PROMPT_COLUMNS, PROMPT_KEY, PROMPT_NAMES, type PromptRow } from "./prompt-rows.js";
import type { Ask, Dialect, UsageDatabase } from "./usage-database.js";
import { type MeasuredSum, spanOf, windowMisses, windowSums } from "./usage-figures.js";
import type { RowOf } from "./usage-tables.js";

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

const REPORTED = "coalesce(p.reported_prompt_tokens, p.prompt_tokens)";
const sum = (of: string, where = "true") => `cast(coalesce(sum(case when ${where} then ${of} end), 0) as bigint)`;
const IS_REPORTED = "p.reported_cached_tokens is not null";

/** {@link ReuseSums} of prompts `p`: as `usage-figures.ts` has them of one. */
const REUSE = `count(*) as prompts, ${sum("p.prompt_tokens")} as "promptTokens",
  ${sum("p.prompt_tokens - p.expected_tokens", `not ${IS_REPORTED}`)}
    + ${sum(`${REPORTED} - p.reported_cached_tokens`, `${REPORTED} > p.reported_cached_tokens`)} as "uncachedTokens",
  ${sum("coalesce(p.planned_tokens, 0) + coalesce(p.unserved_tokens, 0)")} as "missedTokens",
  ${sum("p.prompt_tokens", "p.apart is null")} as "sharedPromptTokens",
  ${sum("p.expected_tokens", "p.apart is null")} as "sharedExpectedTokens",
  ${sum(REPORTED, `p.apart is null and ${IS_REPORTED}`)} as "sharedReportedPromptTokens",
  ${sum("p.reported_cached_tokens", "p.apart is null")} as "sharedReportedCachedTokens",
  coalesce(sum(p.saved_money), 0) as "savedMoney", max(p.at) as "lastAt"`;

/** The share that the worst are found by: of those with enough tokens. What was not reported counts as expected. */
const SHARE = `case
  when r."sharedReportedPromptTokens" >= 10000
    then cast(r."sharedReportedCachedTokens" as double precision) / r."sharedReportedPromptTokens"
  when r."sharedReportedPromptTokens" = 0 and r."sharedPromptTokens" >= 10000
    then cast(r."sharedExpectedTokens" as double precision) / r."sharedPromptTokens" end`;
const ORDERS: Readonly<Record<ReuseOrder, string>> = {
  missed_tokens: `order by r."missedTokens" desc`,
  cached_share: `where ${SHARE} is not null order by ${SHARE}`,
  last_at: `order by r."lastAt" desc`,
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

type ReuseRow = ReuseSums & { readonly userId: UserId; readonly agent: string };
type ConversationRow = ReuseRow & { readonly conversationId: ConversationId };
type UserRow = ReuseRow & { readonly conversations: number };

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
  const owned = `from usage_owners u cross join usage_prompts p`;
  const conversations = `select u.name as "userId", u.agent, u.conversation as "conversationId", ${REUSE} ${owned}
    where p.conversation_id = u.id and u.conversation <> '' and u.tenant = $1`;
  const conversationsGroup = "group by u.id, u.name, u.agent, u.conversation";
  const prompts = `select ${PROMPT_COLUMNS} ${owned} ${PROMPT_NAMES}
    where u.id = p.user_id and g.id = p.group_id and u.conversation = ''`;
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
         from (select u.name as "userId", u.agent, ${REUSE} ${owned}
           where p.user_id = u.id and u.conversation = '' and u.tenant = $1 group by u.id, u.name, u.agent) r
         ${order} limit $2`,
      "users",
    ),
    conversations: each(
      ORDERS,
      (order) =>
        `select r.* from (${conversations} ${given({ $3: "u.name = $3", $4: "u.agent = $4" })} ${conversationsGroup}) r
         ${order} limit $2`,
      "conversations",
    ),
    conversation: statement(
      "conversation",
      `${conversations} and u.name = $2 and u.agent = $3 and u.conversation = $4 ${conversationsGroup}`,
    ),
    cursor: statement("cursor", "select last_id from usage_state where id = 1"),
    changed: statement(
      "changed",
      `select ${PROMPT_COLUMNS}, count(*) over () as fitting from usage_prompts p cross join usage_owners u ${PROMPT_NAMES}
       where p.tenant = $1 and p.changed > $2 and u.id = p.user_id and g.id = p.group_id
       ${given({
         $3: "u.name = $3",
         $4: "u.agent = $4",
         $5: "c.conversation = $5",
         $6: "g.model = $6",
         $7: "g.engine = $7",
         $8: "g.layout = $8",
         $9: "p.planned_cause = $9 or p.unserved_cause = $9",
       })} order by p.number desc limit $10`,
    ),
    newNotes: statement("new_notes", "select * from usage_notes where id > $1 and tenant in ($2, '') order by id"),
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
    const [ofGroups, sums, own, shared] = await this.database.read((ask) =>
      Promise.all([
        ask<GroupRow>(groups, [view.tenant, ...groupValues(view)]),
        this.#sums(ask, view),
        ask<RowOf<"usage_notes">>(notes, [view.tenant, span.from, span.to]),
        ask<RowOf<"usage_notes">>(notes, ["", span.from, span.to]),
      ]),
    );
    const all = [...own, ...shared].map(noteOf).sort((a, b) => a.at - b.at || a.number - b.number);
    return { ...span, ...windowSums(ofGroups, sums), notes: all.slice(-MAX_NOTES) };
  }

  async misses(view: UsageView): Promise<WindowMisses> {
    const sums = await this.database.read((ask) => this.#sums(ask, view));
    return { ...spanOf(view), causes: windowMisses(sums) };
  }

  #sums(ask: Ask, view: UsageView): Promise<MeasuredSum[]> {
    const { from, to, stepMs } = spanOf(view);
    return ask<MeasuredSum>(this.#statements.sums, [view.tenant, ...groupValues(view), stepMs, from, to]);
  }

  /** See `UsageLog.prompts`. What an index finds is compared with the rest of the filter, up to a bound. */
  async prompts(filter: UsageFilter, before: number | null, limit: number): Promise<UsagePage> {
    const { tenant, userId, agentId, conversationId, cause, model, engine, layout } = filter;
    const { owners, groups, scans, page } = this.#statements;
    const hasGroup = model !== undefined || engine !== undefined || layout !== undefined;
    const ofOwners = [tenant, userId, agentValue(agentId), conversationId ?? ""];
    const [ownerIds, groupIds] = await this.database.read((ask) =>
      Promise.all([
        userId === undefined ? [] : ask<{ id: number }>(owners, ofOwners),
        hasGroup ? ask<{ id: number }>(groups, [tenant, ...groupValues(filter)]) : [],
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
    const found = await this.database.read((ask) =>
      Promise.all(
        sources.map(([source, ...values]) =>
          ask<Scanned>(scans[source], [before ?? Number.MAX_SAFE_INTEGER, most, ...values]),
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
    const rows = await this.database.read((ask) => ask<PromptRow>(page, [JSON.stringify(ids)]));
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
    return (await this.#all<UserRow>(this.#statements.users[order], [tenant, limit])).map(withAgent);
  }

  async conversations(
    { tenant, userId, agentId }: Pick<UsageFilter, "tenant" | "userId" | "agentId">,
    order: ReuseOrder,
    limit: number,
  ): Promise<readonly ConversationReuse[]> {
    const values = [tenant, limit, userId ?? null, userId === undefined ? null : agentValue(agentId)];
    return (await this.#all<ConversationRow>(this.#statements.conversations[order], values)).map(withAgent);
  }

  async conversation({
    tenant,
    userId,
    agentId,
    conversationId,
  }: Omit<UsageKey, "requestId"> & {
    readonly conversationId: ConversationId;
  }): Promise<ConversationReuse | null> {
    const values = [tenant, userId, agentId ?? "", conversationId];
    const [row] = await this.#all<ConversationRow>(this.#statements.conversation, values);
    return row === undefined ? null : withAgent(row);
  }

  /** See `UsageLog.changes`. */
  changes(
    since: number | null,
    followed: readonly FollowedUsage[],
  ): Promise<{ readonly cursor: number; readonly changes: readonly UsageChanges[] }> {
    return this.database.read(async (ask) => {
      const [[state], ...changes] = await Promise.all([
        ask<RowOf<"usage_state">>(this.#statements.cursor),
        ...followed.map((one) => this.#changesOf(ask, one, since)),
      ]);
      return { cursor: state?.last_id ?? 0, changes };
    });
  }

  async #changesOf(ask: Ask, { filter, limit }: FollowedUsage, since: number | null): Promise<UsageChanges> {
    if (since === null) return { rows: [], leftOut: 0, notes: [] };
    const { tenant, userId, agentId, conversationId, cause } = filter;
    const ofUser = [userId ?? null, agentValue(agentId), conversationId ?? null];
    // One at least, with which comes how many there are.
    const values = [tenant, since, ...ofUser, ...groupValues(filter), cause ?? null, Math.max(1, limit)];
    const [found, notes] = await Promise.all([
      ask<PromptRow & { readonly fitting: number }>(this.#statements.changed, values),
      ask<RowOf<"usage_notes">>(this.#statements.newNotes, [since, tenant]),
    ]);
    const rows = found.slice(0, limit).map(keptPrompt).reverse();
    return { rows, leftOut: (found[0]?.fitting ?? 0) - rows.length, notes: notes.map(noteOf) };
  }

  #all<R extends object>(statement: NamedStatement, values: readonly unknown[]): Promise<R[]> {
    return this.database.read((ask) => ask<R>(statement, values));
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

function withAgent<T extends ReuseRow>({ agent, ...row }: T): Omit<T, "agent"> & { readonly agentId: AgentId | null } {
  return { ...row, agentId: agentOf(agent) };
}

function noteOf({ tenant, number, at, kind, label, model }: RowOf<"usage_notes">): KeptNote {
  return { tenant: tenant === "" ? null : tenant, number, at, kind: kind as UsageNoteKind, label, model };
}
