import { createMemprefix } from "memprefix";
import { createMemprefixClient } from "memprefix/client";
import type { AdapterOptions, Composing } from "memprefix/openai-agents";
import { runOrdered, type Use } from "../clients/client-program.js";

/**
 * What a framework is tried with: the uses of clients, a history that the framework cuts, agents that hand over to another, and two
 * conversations at once, `trip` and `walk`.
 */
export type AdapterUse = Use | "window" | "handover" | "together";

/** One conversation that a framework is to have. */
export interface AdapterSession {
  /** Address of the engine, with `/v1`. */
  readonly engine: string;
  /** Where memprefix keeps its files, in the program's own process, or the address of a service. */
  readonly memprefix: { readonly dataDir: string } | { readonly url: string };
  /** What the user says, turn by turn. */
  readonly questions: readonly string[];
  /** What memories say: each search finds one more of them, the newest first. */
  readonly facts: readonly string[];
}

/** What came of a conversation. */
export interface Held {
  /** Turn by turn: a text, or an object where it was to be one. */
  readonly answers: readonly unknown[];
  /** What the framework stored, as JSON. */
  readonly stored: string;
}

/** Has a conversation with memories in its prompts. */
export type Holding = (session: AdapterSession, memprefix: Composing) => Promise<Held>;

/** One way of using an adapter. */
export type AdapterWay = Partial<Readonly<Record<AdapterUse, Holding>>>;

export interface AdapterProgram {
  readonly packages: readonly string[];
  readonly ways: Readonly<Record<string, AdapterWay>>;
}

export interface AdapterIntroduction {
  readonly packages: readonly string[];
  readonly ways: readonly { readonly name: string; readonly uses: readonly AdapterUse[] }[];
}

export interface AdapterOrder {
  readonly way: string;
  readonly use: AdapterUse;
  readonly session: AdapterSession;
}

export type AdapterOutcome = Held | { readonly error: string };

/** Runs a program that has conversations as its parent orders them. */
export function runAdapterProgram({ packages, ways }: AdapterProgram): void {
  const offered = Object.entries(ways).map(([name, uses]) => ({ name, uses: Object.keys(uses) as AdapterUse[] }));
  const introduction: AdapterIntroduction = { packages, ways: offered };
  runOrdered<AdapterOrder, AdapterOutcome>(introduction, async ({ way, use, session }) => {
    const hold = ways[way]?.[use];
    if (hold === undefined) throw new Error(`no ${use} of ${way}`);
    return holdWith(session, hold);
  });
}

async function holdWith(session: AdapterSession, hold: Holding): Promise<Held> {
  if ("url" in session.memprefix) return hold(session, createMemprefixClient({ url: session.memprefix.url }));
  let searches = 0;
  const search = async () => session.facts.slice(0, ++searches).toReversed().map(asMemory);
  const memprefix = createMemprefix({ dataDir: session.memprefix.dataDir, source: { search } });
  try {
    return await hold(session, memprefix);
  } finally {
    await memprefix.close();
  }
}

const asMemory = (memory: string) => ({ id: `m-${memory}`, memory });

/** Options that every way has: Ana's trip, and errors that end the conversation as they would not for a user. */
export function tried<Call>(memprefix: Composing, errors: unknown[]): AdapterOptions<Call> {
  return { memprefix, userId: "ana", conversationId: "trip", onError: (error) => errors.push(error) };
}
