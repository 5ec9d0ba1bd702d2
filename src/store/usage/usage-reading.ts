import type { UsageNoteKind, UserId } from "../../core/index.js";
import type {
  GroupFilter,
  KeptNote,
  KeptUsage,
  UsageFilter,
  UsageKey,
  UsagePage,
  UsageView,
  WindowMisses,
  WindowSums,
} from "../api/usage-log.js";
import type { Dialect, NamedStatement } from "../database/sql.js";
import type { GroupRow } from "./accounting.js";
import { type MeasuredSum, spanOf, windowMisses, windowSums } from "./usage-figures.js";
import type { RowOf, RunQuery, UsageDatabase } from "./usage-tables.js";
import { keptPrompt, PROMPT_COLUMNS, PROMPT_KEY, PROMPT_NAMES, type PromptRow } from "./usage-tables.js";

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

function noteOf({ tenant, number, at, kind, label, model }: RowOf<"usage_notes">): KeptNote {
  return { tenant: tenant === "" ? null : tenant, number, at, kind: kind as UsageNoteKind, label, model };
}
