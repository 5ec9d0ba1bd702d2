import type Database from "better-sqlite3";
import type { UsageWindow } from "../../core/index.js";
import type { UsageSums } from "../api/usage-log.js";
import {
  addSums,
  binOf,
  type GrowingSums,
  noSums,
  pricedCauses,
  REUSE_NAMES,
  SUM_COLUMNS,
  SUM_NAMES,
  sumsOf,
  type Valued,
} from "./usage-sums.js";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
/** The steps of an hour, a day and a month: each window reads sums of its own, and no more than it shows. */
export const STEPS_MS = { hour: MINUTE_MS, day: 15 * MINUTE_MS, month: 6 * HOUR_MS } as const satisfies Record<
  UsageWindow,
  number
>;

/** Name of the mark that counts the prompts that are kept. */
const KEPT = "prompts";

/** The rows of which a prompt is a part. */
interface PartOf {
  readonly tenant: number;
  readonly user: number;
  readonly conversation: number | null;
  readonly group: number;
}

/** What a prompt adds to a step. */
interface PromptParts {
  readonly sums: UsageSums;
  readonly bin: number | null;
  readonly causes: ReturnType<typeof pricedCauses>;
}

interface Counted {
  prompts: number;
  tokens: number;
  money: number;
}

/** The sums that a transaction changes, each once however many prompts change it. */
export class TotalsBatch {
  readonly #steps = new Map<string, { readonly key: readonly number[]; readonly sums: GrowingSums }>();
  readonly #times = new Map<string, { readonly key: readonly number[]; prompts: number }>();
  readonly #causes = new Map<string, { readonly key: readonly (number | string)[]; readonly of: Counted }>();
  readonly #users = new Map<number, { readonly sums: GrowingSums; lastAt: number }>();
  readonly #conversations = new Map<number, { readonly sums: GrowingSums; lastAt: number }>();
  #kept: number;

  constructor(private readonly statements: TotalsStatements) {
    this.#kept = Number((statements.kept.get(KEPT) as { text: string } | undefined)?.text ?? 0);
  }

  /** Prompts that are kept, those of this transaction included. */
  countKept(): number {
    return this.#kept;
  }

  /**
   * Counts a prompt in, or out (`sign` -1).
   *
   * @param place `gone`: it is removed, and stays in the sums over time
   */
  add(of: PartOf, at: number, value: Valued, sign: 1 | -1, place: "kept" | "gone"): void {
    const sums = sumsOf(value);
    this.#kept += sign;
    for (const [id, all] of [
      [of.user, this.#users],
      [of.conversation, this.#conversations],
    ] as const) {
      if (id === null) continue;
      const changed = all.get(id) ?? { sums: noSums(), lastAt: 0 };
      addSums(changed.sums, sums, sign);
      if (sign > 0) changed.lastAt = Math.max(changed.lastAt, at);
      all.set(id, changed);
    }
    if (place === "gone") return;
    const parts = { sums, bin: binOf(value.usage), causes: pricedCauses(value) };
    for (const step of Object.values(STEPS_MS))
      this.#addToStep([of.tenant, step, at - (at % step), of.group], parts, sign);
  }

  #addToStep(key: readonly number[], { sums, bin, causes }: PromptParts, sign: 1 | -1): void {
    const name = key.join();
    const step = this.#steps.get(name) ?? { key, sums: noSums() };
    addSums(step.sums, sums, sign);
    this.#steps.set(name, step);
    if (bin !== null) {
      const times = this.#times.get(`${name},${bin}`) ?? { key: [...key, bin], prompts: 0 };
      times.prompts += sign;
      this.#times.set(`${name},${bin}`, times);
    }
    for (const { cause, tokens, money } of causes) {
      const caused = this.#causes.get(`${name},${cause}`) ?? {
        key: [...key, cause],
        of: { prompts: 0, tokens: 0, money: 0 },
      };
      caused.of.prompts += sign;
      caused.of.tokens += sign * tokens;
      caused.of.money += sign * money;
      this.#causes.set(`${name},${cause}`, caused);
    }
  }

  /** Writes what changed. */
  flush(): void {
    const { step, time, cause, user, conversation, keep } = this.statements;
    for (const { key, sums } of this.#steps.values()) step.run([...key, ...SUM_NAMES.map((name) => sums[name])]);
    for (const { key, prompts } of this.#times.values()) time.run([...key, prompts]);
    for (const { key, of } of this.#causes.values()) cause.run([...key, of.prompts, of.tokens, of.money]);
    for (const [all, statement] of [
      [this.#users, user],
      [this.#conversations, conversation],
    ] as const) {
      for (const [id, { sums, lastAt }] of all) statement.run([...REUSE_NAMES.map((name) => sums[name]), lastAt, id]);
    }
    keep.run([KEPT, String(this.#kept)]);
    this.#steps.clear();
    this.#times.clear();
    this.#causes.clear();
    this.#users.clear();
    this.#conversations.clear();
  }

  /** Removes users and conversations of which no prompt is kept any more. */
  dropEmpty(): void {
    const { emptyConversation, emptyUser, ownerOf, fewer } = this.statements;
    const [users, conversations] = [[...this.#users.keys()], [...this.#conversations.keys()]];
    this.flush();
    for (const id of conversations) {
      const owner = ownerOf.get(id) as { user: number } | undefined;
      if (emptyConversation.run(id).changes > 0 && owner !== undefined) fewer.run(owner.user);
    }
    for (const id of users) emptyUser.run(id);
  }
}

type StatementName =
  | "step"
  | "time"
  | "cause"
  | "user"
  | "conversation"
  | "emptyUser"
  | "emptyConversation"
  | "ownerOf"
  | "fewer"
  | "kept"
  | "keep";
type TotalsStatements = Readonly<Record<StatementName, Database.Statement>>;

function statementsOf(sqlite: Database.Database): TotalsStatements {
  const columns = SUM_NAMES.map((name) => SUM_COLUMNS[name]);
  const added = (names: readonly string[]) => names.map((name) => `${name} = ${name} + excluded.${name}`).join();
  const marks = (count: number) => Array(count).fill("?").join();
  const reuse = REUSE_NAMES.map((name) => `${SUM_COLUMNS[name]} = ${SUM_COLUMNS[name]} + ?`).join();
  return {
    step: sqlite.prepare(
      `insert into sums (tenant, step, start, grp, ${columns.join()}) values (${marks(4 + columns.length)})
       on conflict do update set ${added(columns)}`,
    ),
    time: sqlite.prepare(`insert into times values (${marks(6)}) on conflict do update set ${added(["prompts"])}`),
    cause: sqlite.prepare(
      `insert into cause_sums values (${marks(8)}) on conflict do update set ${added(["prompts", "tokens", "money"])}`,
    ),
    user: sqlite.prepare(`update users set ${reuse}, last_at = max(last_at, ?) where id = ?`),
    conversation: sqlite.prepare(`update conversations set ${reuse}, last_at = max(last_at, ?) where id = ?`),
    emptyUser: sqlite.prepare("delete from users where id = ? and prompts <= 0"),
    emptyConversation: sqlite.prepare("delete from conversations where id = ? and prompts <= 0"),
    ownerOf: sqlite.prepare("select user from conversations where id = ?"),
    fewer: sqlite.prepare("update users set conversations = conversations - 1 where id = ?"),
    kept: sqlite.prepare("select text from marks where name = ?"),
    keep: sqlite.prepare("insert into marks values (?, ?) on conflict do update set text = excluded.text"),
  };
}

/** The sums over time, of users and of conversations. */
export class UsageTotals {
  readonly #statements: TotalsStatements;

  constructor(sqlite: Database.Database) {
    this.#statements = statementsOf(sqlite);
  }

  /** The sums of one transaction. */
  batch(): TotalsBatch {
    return new TotalsBatch(this.#statements);
  }
}
