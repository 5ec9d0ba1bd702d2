import type { Digest, StoredScope } from "../../core/index.js";
import type { DigestSeal } from "../database/digest-seal.js";
import { parsedBody } from "../journal/damaged-record.js";
import type { NewRecord } from "../journal/journal-database.js";
import { conversationNumber } from "../journal/keyed-numbers.js";
import { packedReport } from "../journal/packed-report.js";
import { SaidCodec } from "../journal/said-codec.js";
import { SentSections } from "./sent-sections.js";
import { readAnswer } from "./table-rows.js";
import type { TableScopes, TableTurn } from "./table-scope.js";

/** Numbers that each turn's records have room for: what was composed, a report, an eviction. */
const SEQS_OF_A_TURN = 3;

const NOTHING = { turns: 0, conversation: null, requestId: null, leaf: null, changes: null, said: null } as const;

/** A record, and the `seq` by which records of all scopes are in the order of time; null: any. */
export interface TableRecord {
  readonly record: NewRecord;
  readonly seq: number | null;
}

/** Makes the records of a scope from its rows in the tables; writes nothing. */
export class TableRecords {
  readonly #said: SaidCodec;

  constructor(
    private readonly tables: TableScopes,
    private readonly digests: DigestSeal,
  ) {
    this.#said = new SaidCodec(digests);
  }

  /** In their order, read in pieces. Throws `DamagedRecordError` for a row that nothing of ours wrote. */
  *of(scopeId: number, state: StoredScope): Generator<TableRecord> {
    const sent = new SentSections(state, this.tables.sections(scopeId));
    let turn = 0;
    let isEmpty = true;
    for (const told of this.tables.turns(scopeId)) {
      turn = told.said.turn.id;
      isEmpty = false;
      yield* this.#ofTurn(told, sent.of(told.said.turn));
    }
    const { left } = sent;
    if (left.length > 0) {
      const record = { ...NOTHING, kind: "forgotten", at: 0, turn, said: this.#said.encodeForgotten(left) } as const;
      yield { record, seq: null };
    } else if (isEmpty && state.register.versions.length > 0)
      // Memories are known by a record, and turns may all have expired.
      yield { record: { ...NOTHING, kind: "changed", at: 0, turn }, seq: null };
  }

  /** Each turn in a record of its own, with its request; then what was reported of that. */
  *#ofTurn({ row, said, at, requests }: TableTurn, sections: readonly Digest[]): Generator<TableRecord> {
    const { turn } = said;
    const conversation = turn.conversationId === null ? null : conversationNumber(turn.conversationId, this.digests);
    const shared = { ...NOTHING, at, turn: turn.id, turns: 1, conversation };
    const seq = SEQS_OF_A_TURN * row;
    const [request] = requests;
    if (requests.length > 1) throw new Error("a turn has one request");
    if (request === undefined) {
      const body = this.#said.encodeComposed({ turns: [said], sections, request: null });
      yield { record: { ...shared, kind: "said", said: body }, seq };
      return;
    }
    const { requestId, leaf, body, answer, observed, evicted } = request;
    const asked = { body: this.digests.open(body), answer: readAnswer(answer) };
    const composed = this.#said.encodeComposed({ turns: [said], sections, request: asked });
    yield { record: { ...shared, kind: "composed", requestId, leaf, said: composed }, seq };
    const later = { ...NOTHING, at: 0, turn: turn.id, requestId };
    if (observed !== null) {
      const report = this.#said.encodeReported(parsedBody("a report", observed, packedReport));
      yield { record: { ...later, kind: "reported", said: report }, seq: seq + 1 };
    }
    if (evicted === 1) yield { record: { ...later, kind: "evicted" }, seq: seq + 2 };
  }
}
