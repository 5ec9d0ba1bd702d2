/*
 * Which process sends an alert, where several evaluate the same rules on one log.
 */

/** Milliseconds for which a process may send an alert before another takes it over: longer than all tries of its webhook. */
export const CLAIM_MS = 120_000;
/** Milliseconds for which a state stands: processes evaluate a minute apart, at moments of their own, on figures that grow meanwhile. */
const SETTLED_MS = 30_000;

/** What a process found of a rule. */
export interface JudgedRule {
  /** The rule with all that it says: one that was changed is another. */
  readonly rule: string;
  /** Whether its condition holds; null: too little is known. */
  readonly isMet: boolean | null;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What is kept of a rule that ever fired. */
export interface KeptAlert {
  /** Grows with every claim: a claim that was taken over is no longer its process's. */
  readonly number: number;
  readonly isFiring: boolean;
  /** When it began or ended, in milliseconds since the epoch. */
  readonly changedAt: number;
  /** Until when the one that claimed it may send it; null: it was sent. */
  readonly claimedUntil: number | null;
}

/** What all processes hold of a rule, and whether the requesting one is to send it. */
export interface AlertClaim {
  readonly isFiring: boolean;
  /** Null: it never fired. */
  readonly changedAt: number | null;
  /** The number of the claim, by which it is settled; null: nothing is to be sent, or another process sends it. */
  readonly claim: number | null;
}

/**
 * What becomes of a rule's row, within a transaction. A change is claimed by whoever finds it first. A claim that was not settled in time
 * goes to the next that claims it: a process that died before it sent it silences nothing, and one that died right after has it sent twice.
 */
export function claimed(
  kept: KeptAlert | null,
  { isMet, now }: JudgedRule,
): { row: KeptAlert | null; claim: AlertClaim } {
  const was = kept?.isFiring ?? false;
  const isSettled = kept === null || Math.abs(now - kept.changedAt) >= SETTLED_MS;
  const number = (kept?.number ?? 0) + 1;
  const claimedUntil = now + CLAIM_MS;
  if (isMet !== null && isMet !== was && isSettled) {
    const row = { number, isFiring: isMet, changedAt: now, claimedUntil };
    return { row, claim: { isFiring: isMet, changedAt: now, claim: number } };
  }
  if (kept === null) return { row: null, claim: { isFiring: false, changedAt: null, claim: null } };
  const { isFiring, changedAt } = kept;
  if (kept.claimedUntil === null || kept.claimedUntil > now)
    return { row: null, claim: { isFiring, changedAt, claim: null } };
  return { row: { ...kept, number, claimedUntil }, claim: { isFiring, changedAt, claim: number } };
}
