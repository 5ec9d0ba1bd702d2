import type Database from "better-sqlite3";
import type { ChatMessage, RequestId, SpokenTurn, StoredPrompt } from "../../../src/core/index.js";
import { append } from "../../../src/core/text/lists.js";
import type { PromptHistory } from "../../../src/store/api/store.js";
import type { DigestSeal, SealedDigest } from "../../../src/store/database/digest-seal.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { readTurn } from "../../../src/store/upgrade/table-rows.js";
import {
  type RequestRow,
  SELECT_REQUESTS,
  SELECT_TURNS,
  type TurnRow,
} from "../../../src/store/upgrade/table-statements.js";
import { readServed } from "./rows.js";
import type { Statements } from "./statements.js";
import type { StoredMessages } from "./stored-messages.js";

/** Newest prompts of a scope that are compared … */
const NEWEST_OF_SCOPE = 200;
/** … and of the conversation. */
const NEWEST_OF_CONVERSATION = 100;
/** Most turns read for prompts of other conversations; prompts that need more are left out. */
const MOST_TURNS = 5_000;

/** Turns without tokens were restated with a later prompt and never sent as prompts. */
const SENT_BEFORE = "from turns where scope_id = @scopeId and id < @id and prompt_tokens > 0";

/** A turn with its request, null where that is gone. */
interface AnsweredTurn {
  readonly turn: TurnRow;
  readonly request: RequestRow | null;
}

/** See `Store.findPromptHistory`. Reads in one transaction. */
export function readPromptHistory(
  { sqlite, digests }: Pick<OpenDatabase, "sqlite" | "digests">,
  statements: Statements,
  messages: StoredMessages,
  scopeId: number,
  requestId: RequestId,
): PromptHistory | null {
  return sqlite.transaction((): PromptHistory | null => {
    const request = statements.request.get({ scopeId, requestId });
    const own = request && statements.turn.get({ scopeId, id: request.turn });
    if (request === undefined || own === undefined) return null;
    const read = new PromptReading(statements, messages, digests, scopeId);
    const prompt = read.promptOf({ turn: own, request }, Number.POSITIVE_INFINITY);
    if (prompt === null) return null;
    const turns = turnsToCompare(sqlite, statements, scopeId, own);
    const requestOf = sqlite.prepare<[number, number], RequestRow>(
      `${SELECT_REQUESTS} where scope_id = ? and turn = ?`,
    );
    const earlier = turns
      .sort((a, b) => b.id - a.id)
      .map((turn) => {
        const isOfConversation = turn.conversationId === own.conversationId;
        const answered = { turn, request: requestOf.get(scopeId, turn.id) ?? null };
        return read.promptOf(answered, isOfConversation ? Number.POSITIVE_INFINITY : MOST_TURNS);
      })
      .filter((candidate) => candidate !== null);
    const sent = sqlite.prepare<[object], number>(`select count(*) ${SENT_BEFORE}`).pluck();
    return { prompt, earlier, isComplete: earlier.length === sent.get({ scopeId, id: own.id }) };
  })();
}

/** The newest turns before one, of its scope and of its conversation, and its parent. */
function turnsToCompare(
  sqlite: Database.Database,
  statements: Statements,
  scopeId: number,
  { id, conversationId, parent }: TurnRow,
): TurnRow[] {
  const select = SELECT_TURNS.replace("from turns", SENT_BEFORE);
  const found = sqlite
    .prepare<[object], TurnRow>(`${select} order by id desc limit @limit`)
    .all({ scopeId, id, limit: NEWEST_OF_SCOPE });
  if (conversationId !== null) {
    const ofConversation = sqlite
      .prepare<[object], TurnRow>(`${select} and conversation_id = @conversationId order by id desc limit @limit`)
      .all({ scopeId, id, conversationId, limit: NEWEST_OF_CONVERSATION });
    append(found, ofConversation);
  }
  const before = parent === null ? undefined : statements.turn.get({ scopeId, id: parent });
  if (before !== undefined && before.promptTokens > 0) found.push(before);
  return [...new Map(found.map((turn) => [turn.id, turn])).values()];
}

/** Reads prompts; turns and instructions that several share are read once. */
class PromptReading {
  readonly #turns = new Map<number, SpokenTurn>();
  readonly #heads = new Map<string, readonly ChatMessage[] | null>();

  constructor(
    private readonly statements: Statements,
    private readonly messages: StoredMessages,
    private readonly digests: DigestSeal,
    private readonly scopeId: number,
  ) {}

  /** Null where a turn of its path is missing, or would be read past `mostTurns`. */
  promptOf({ turn: row, request }: AnsweredTurn, mostTurns: number): StoredPrompt | null {
    const path = this.#pathTo(row, mostTurns);
    if (path === null) return null;
    const served = request === null ? null : readServed(request);
    const { cachedTokens, promptTokens = null, diagnosis = null } = served?.observed ?? {};
    return {
      requestId: request === null ? null : (request.requestId as RequestId),
      turns: path,
      head: this.#head(row.head),
      at: row.createdAt,
      plan: served?.plan ?? null,
      evicted: served?.evicted ?? false,
      report: cachedTokens === undefined ? null : { cachedTokens, promptTokens },
      diagnosis,
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
    const listed = this.statements.head.get({ scopeId: this.scopeId, digest }) ?? null;
    const head = listed === null ? null : this.messages.wholeOf(listed);
    this.#heads.set(digest, head);
    return head;
  }
}
