import { and, desc, eq, gt, lt, sql } from "drizzle-orm";
import type { ChatMessage, RequestId, SpokenTurn, StoredPrompt } from "../../core/index.js";
import type { PromptHistory } from "../api/store.js";
import type { DigestSeal, SealedDigest } from "../database/digest-seal.js";
import type { OpenDatabase } from "../database/open-database.js";
import { requests, turns } from "../database/schema.js";
import type { Statements } from "../database/statements.js";
import { readServed, readTurn } from "./rows.js";
import type { StoredMessages } from "./stored-messages.js";

/** Newest prompts of a scope that are looked at … */
const NEWEST_OF_SCOPE = 200;
/** … and of the conversation. */
const NEWEST_OF_CONVERSATION = 100;
/** Turns that prompts of other conversations may bring in; those that need more are left out. */
const MOST_TURNS = 5_000;

/** Turns that were only said again with a prompt are no prompts themselves. */
const WAS_SENT = gt(turns.promptTokens, 0);

type TurnRow = typeof turns.$inferSelect;
type RequestRow = typeof requests.$inferSelect;
interface Row {
  readonly turns: TurnRow;
  readonly requests: RequestRow | null;
}

/** Reads a request's prompt and those before it that it is compared with, in one transaction; null for a request that is not there. */
export function readPromptHistory(
  { orm, sqlite, digests }: OpenDatabase,
  statements: Statements,
  messages: StoredMessages,
  scopeId: number,
  requestId: RequestId,
): PromptHistory | null {
  return sqlite.transaction((): PromptHistory | null => {
    const request = statements.request.get({ scopeId, requestId });
    const own = request && statements.turn.get({ scopeId, id: request.turn });
    if (request === undefined || own === undefined) return null;
    const newest = (of: "scope" | "conversation", limit: number): Row[] => {
      const before = and(eq(turns.scopeId, scopeId), lt(turns.id, own.id), WAS_SENT);
      return orm
        .select()
        .from(turns)
        .leftJoin(requests, and(eq(requests.scopeId, turns.scopeId), eq(requests.turn, turns.id)))
        .where(of === "scope" ? before : and(before, eq(turns.conversationId, own.conversationId ?? "")))
        .orderBy(desc(turns.id))
        .limit(limit)
        .all();
    };
    const ofScope = newest("scope", NEWEST_OF_SCOPE);
    const ofConversation = own.conversationId === null ? [] : newest("conversation", NEWEST_OF_CONVERSATION);
    const read = new PromptReading(statements, messages, digests, scopeId);
    const prompt = read.promptOf({ turns: own, requests: request }, Number.POSITIVE_INFINITY);
    if (prompt === null) return null;
    const rows = new Map([...ofConversation, ...ofScope].map((row) => [row.turns.id, row]));
    if (own.parent !== null && !rows.has(own.parent)) {
      const parent = statements.turn.get({ scopeId, id: own.parent });
      const served = orm
        .select()
        .from(requests)
        .where(and(eq(requests.scopeId, scopeId), eq(requests.turn, own.parent)))
        .get();
      if (parent !== undefined && parent.promptTokens > 0)
        rows.set(parent.id, { turns: parent, requests: served ?? null });
    }
    const earlier = [...rows.values()]
      .sort((a, b) => b.turns.id - a.turns.id)
      .map((row) =>
        read.promptOf(row, row.turns.conversationId === own.conversationId ? Number.POSITIVE_INFINITY : MOST_TURNS),
      )
      .filter((candidate) => candidate !== null);
    const before = orm
      .select({ rows: sql<number>`count(*)` })
      .from(turns)
      .where(and(eq(turns.scopeId, scopeId), lt(turns.id, own.id), WAS_SENT))
      .get();
    return { prompt, earlier, isComplete: earlier.length === (before?.rows ?? 0) };
  })();
}

/** Reads prompts; turns and instructions that several have in common are read once. */
class PromptReading {
  readonly #turns = new Map<number, SpokenTurn>();
  readonly #heads = new Map<string, readonly ChatMessage[] | null>();

  constructor(
    private readonly statements: Statements,
    private readonly messages: StoredMessages,
    private readonly digests: DigestSeal,
    private readonly scopeId: number,
  ) {}

  /** Null where its path is broken, or would bring the turns that were read to more than `mostTurns`. */
  promptOf({ turns: row, requests: request }: Row, mostTurns: number): StoredPrompt | null {
    const path = this.#pathTo(row, mostTurns);
    if (path === null) return null;
    const served = request === null ? null : readServed(request);
    const { cachedTokens, promptTokens = null } = served?.observed ?? {};
    return {
      requestId: request === null ? null : (request.requestId as RequestId),
      turns: path,
      head: this.#head(row.head),
      at: row.createdAt,
      plan: served?.plan ?? null,
      evicted: served?.evicted ?? false,
      report: cachedTokens === undefined ? null : { cachedTokens, promptTokens },
    };
  }

  #pathTo(row: TurnRow, mostTurns: number): readonly SpokenTurn[] | null {
    const path: SpokenTurn[] = [];
    for (let next: number | null = row.id; next !== null; ) {
      const spoken: SpokenTurn | null = this.#turns.get(next) ?? this.#read(next === row.id ? row : next, mostTurns);
      if (spoken === null) return null;
      path.push(spoken);
      next = spoken.turn.parent;
    }
    return path.reverse();
  }

  #read(from: TurnRow | number, mostTurns: number): SpokenTurn | null {
    if (this.#turns.size >= mostTurns) return null;
    const row = typeof from === "number" ? this.statements.turn.get({ scopeId: this.scopeId, id: from }) : from;
    if (row === undefined) return null;
    const turn = readTurn(row, this.messages.saidIn(row.given), this.digests);
    const spoken = { turn, given: this.messages.wholeOf(row.given) };
    this.#turns.set(row.id, spoken);
    return spoken;
  }

  #head(digest: SealedDigest): readonly ChatMessage[] | null {
    const known = this.#heads.get(digest);
    if (known !== undefined) return known;
    const listed = this.statements.head.get({ scopeId: this.scopeId, digest })?.messages ?? null;
    const head = listed === null ? null : this.messages.wholeOf(listed);
    this.#heads.set(digest, head);
    return head;
  }
}
