import type { JournalUnit } from "../journal/journal-database.js";
import type { Outcome, WritingCall } from "./journal-calls.js";

/** Groups that the writer has: one that it writes, and the next, so that it never waits for this thread. */
const MOST_UNDER_WAY = 2;
/** Calls of a group … */
const MOST_CALLS = 256;
/** … and characters of what they write, from which no more are added: bounds the wait of the first. */
const MOST_CHARACTERS = 4_000_000;

interface Added {
  readonly call: WritingCall;
  readonly size: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Groups of calls that go to the writer in one message, and are one transaction there: all that came since the last group. */
export class WriteGroups {
  #added: Added[] = [];
  #underWay = 0;
  #isDue = false;
  #idle: (() => void)[] = [];

  /** @param send writes a group; rejects where none of it is known to be stored */
  constructor(private readonly send: (calls: readonly WritingCall[]) => Promise<readonly Outcome[]>) {}

  add(call: WritingCall): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#added.push({ call, size: sizeOf(call), resolve, reject });
      if (this.#isDue || this.#underWay >= MOST_UNDER_WAY) return;
      this.#isDue = true;
      // With what else this iteration of the event loop brings.
      setImmediate(() => {
        this.#isDue = false;
        this.#sendNext();
      });
    });
  }

  /** Resolves when everything added so far is stored, or has failed. */
  idle(): Promise<void> {
    if (this.#underWay === 0 && this.#added.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #sendNext(): void {
    while (this.#underWay < MOST_UNDER_WAY && this.#added.length > 0) void this.#write(this.#nextGroup());
  }

  #nextGroup(): readonly Added[] {
    let count = 0;
    for (let size = 0; count < this.#added.length && count < MOST_CALLS && size < MOST_CHARACTERS; count++)
      size += this.#added[count]?.size ?? 0;
    return this.#added.splice(0, count);
  }

  async #write(group: readonly Added[]): Promise<void> {
    this.#underWay++;
    try {
      const outcomes = await this.send(group.map(({ call }) => call));
      for (const [at, { resolve }] of group.entries()) resolve(outcomes[at] as Outcome);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    this.#underWay--;
    this.#sendNext();
    if (this.#underWay === 0 && this.#added.length === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/** Characters that a call writes, about. */
function sizeOf({ name, args }: WritingCall): number {
  if (name !== "writeTogether") return 0;
  let size = 0;
  for (const { changes } of args[0] as readonly JournalUnit[])
    for (const change of changes) {
      if (change.kind === "snapshot") size += change.data.length;
      else if (change.kind === "append")
        for (const { changes: changed, said } of change.records) size += (changed?.length ?? 0) + (said?.length ?? 0);
    }
  return size;
}
