import type Database from "better-sqlite3";
import { type AlertClaim, claimed, type JudgedRule, type KeptAlert } from "../api/alert-claims.js";

type AlertRow = Omit<KeptAlert, "isFiring"> & { readonly isFiring: number };

/** What alert rules were judged to be, for all processes on the file. */
export class KeptAlerts {
  constructor(private readonly sqlite: Database.Database) {}

  /** See `UsageLog.claimAlert`. */
  claim(judged: JudgedRule): AlertClaim {
    const work = this.sqlite.transaction(() => {
      const found = this.sqlite
        .prepare(
          `select number, is_firing as isFiring, changed_at as changedAt, claimed_until as claimedUntil from alerts where rule = ?`,
        )
        .get(judged.rule) as AlertRow | undefined;
      const { row, claim } = claimed(found === undefined ? null : { ...found, isFiring: found.isFiring === 1 }, judged);
      if (row !== null)
        this.sqlite
          .prepare(
            "insert or replace into alerts (rule, number, is_firing, changed_at, claimed_until) values (?, ?, ?, ?, ?)",
          )
          .run(judged.rule, row.number, Number(row.isFiring), row.changedAt, row.claimedUntil);
      return claim;
    });
    return work.immediate();
  }

  /** See `UsageLog.settleAlert`. */
  settle(rule: string, claim: number): void {
    this.sqlite.prepare("update alerts set claimed_until = null where rule = ? and number = ?").run(rule, claim);
  }
}
