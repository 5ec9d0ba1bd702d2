/** What every client is tried with, as far as it has it. */
export const USES = ["json", "stream", "tools", "steps", "structured"] as const;
export type Use = (typeof USES)[number];

/** One conversation that a client is to have. */
export interface Session {
  /** Address of the service, without `/v1`. */
  readonly base: string;
  /** The engine's address, `/v1` included: for what composes in the client's own process. */
  readonly engine: string;
  /** Headers that say who asks, in which conversation. */
  readonly headers: Readonly<Record<string, string>>;
  /** What the user says, turn by turn. */
  readonly questions: readonly string[];
}

/** Begins a conversation. The result says one thing, and resolves to the answer: a text, or an object where it was to be one. */
export type Conversing = (session: Session) => (question: string) => Promise<unknown>;

/** A program of somebody who uses a client: nothing of memprefix's is in it but an address and the headers. */
export interface ClientProgram {
  readonly client: string;
  /** The route that it asks by default. */
  readonly api: "chat completions" | "Responses" | "Messages";
  readonly uses: Partial<Readonly<Record<Use, Conversing>>>;
}

/** What a program says of itself when it has started. */
export type Introduction = Omit<ClientProgram, "uses"> & { readonly uses: readonly Use[] };

/** What it is asked, over its channel, and what it says then. */
export interface Order {
  readonly use: Use;
  readonly session: Session;
}
export type Outcome = { readonly answers: readonly unknown[] } | { readonly error: string };

/** Introduces this process to its parent, and carries out what that orders. */
export function runOrdered<Ordered, Done>(introduction: object, carryOut: (order: Ordered) => Promise<Done>): void {
  process.on("message", async (order: Ordered) => {
    const outcome = await carryOut(order).catch((error: unknown) => ({
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }));
    process.send?.(outcome);
  });
  process.once("disconnect", () => process.exit());
  process.send?.(introduction);
}

/** Runs a program that has conversations as its parent orders them. */
export function runProgram({ uses, ...about }: ClientProgram): void {
  const introduction: Introduction = { ...about, uses: USES.filter((use) => uses[use] !== undefined) };
  runOrdered<Order, Outcome>(introduction, async ({ use, session }) => {
    const say = uses[use]?.(session);
    const answers: unknown[] = [];
    for (const question of session.questions) answers.push(await say?.(question));
    return { answers };
  });
}

/** What the tool `weather` knows. */
export function weatherIn(city: string): string {
  return `12 degrees in ${city}.`;
}

export const INSTRUCTIONS = "You plan trips. Be brief.";

/** What is remembered of the user: each search finds one more of them, the newest first. */
export const FACTS = [
  "Ana is vegetarian and eats no fish.",
  "Ana is in Lisbon this week.",
  "Ana likes to walk.",
  "Ana has a dog.",
  "Ana gets up late.",
];
