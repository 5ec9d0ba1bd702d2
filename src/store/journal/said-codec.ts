import { z } from "zod";
import type { Digest } from "../../core/index.js";
import type { EngineReport, StoredAnswer } from "../api/store.js";
import { type DigestSeal, isSealed, type SealedDigest } from "../database/digest-seal.js";
import { parsedBody } from "./damaged-record.js";
import { type PackedAnswer, packAnswer, packedAnswer, unpackAnswer } from "./packed-answer.js";
import { packedReport } from "./packed-report.js";
import { isTurn, type PackedTurn, packTurn, type SaidTurn, unpackTurn } from "./packed-turn.js";
import { isArrayOf, rowsOf, shaped } from "./row-shapes.js";

export type { SaidTurn } from "./packed-turn.js";

/** What a record of kind `composed` says; or, without a request, one of kind `said`. */
export interface ComposedRecord {
  /** Earlier turns that were restated, first to last, and then the composed one. */
  readonly turns: readonly SaidTurn[];
  /** Digests of the sections that the composed turn sent, and that later turns replay. */
  readonly sections: readonly Digest[];
  readonly request: AnsweredBody | null;
}

/** What a request asked, and what it was answered. */
export interface AnsweredBody {
  readonly body: Digest;
  readonly answer: StoredAnswer;
}

/** The format of what records say; the first element of each. A new one is another number, and this one stays readable. */
const FORMAT = 1;

const format = z.literal(FORMAT);
const turns = shaped<readonly PackedTurn[]>("a turn", isArrayOf({ first: [isTurn], rest: isTurn }));
const sealedDigests = rowsOf<SealedDigest>("a digest", isSealed);
const composed = (ofTurns: z.ZodType<readonly PackedTurn[]>, request: z.ZodType<PackedRequest>) =>
  z.tuple([format, ofTurns, sealedDigests, request]);
/** Digest of the request's body, and the answer; 0: no request. */
type PackedRequest = 0 | [SealedDigest, PackedAnswer];
const packedRequest = z.union([z.literal(0), z.tuple([shaped<SealedDigest>("a digest", isSealed), packedAnswer])]);

const whole = composed(turns, packedRequest);
const turnsOnly = composed(turns, z.any());
const requestOnly = composed(z.any(), packedRequest);
const sectionsOnly = composed(z.any(), z.any());
const reported = z.tuple([format, packedReport]);
const forgotten = z.tuple([format, sealedDigests]);

/**
 * What records say, as text. Digests are sealed; a message's are computed again from it, unless it was erased. Text that this did not write
 * is a `DamagedRecordError`.
 */
export class SaidCodec {
  constructor(private readonly digests: DigestSeal) {}

  encodeComposed({ turns, sections, request }: ComposedRecord): string {
    const { digests } = this;
    const packed: z.output<typeof whole> = [
      FORMAT,
      turns.map((said) => packTurn(said, digests)),
      sections.map((section) => digests.seal(section)),
      request === null ? 0 : [digests.seal(request.body), packAnswer(request.answer)],
    ];
    return JSON.stringify(packed);
  }

  decodeComposed(text: string): ComposedRecord {
    const { digests } = this;
    const [, turns, sections, request] = parsedBody("a composed request", text, whole);
    return {
      turns: turns.map((turn) => unpackTurn(turn, digests)),
      sections: sections.map((section) => digests.open(section)),
      request: this.#request(request),
    };
  }

  /** Only its turns; the rest is not looked at. */
  decodeTurns(text: string): SaidTurn[] {
    return parsedBody("a composed request", text, turnsOnly)[1].map((turn) => unpackTurn(turn, this.digests));
  }

  /** Only its request; the rest is not looked at. */
  decodeRequest(text: string): AnsweredBody | null {
    return this.#request(parsedBody("a composed request", text, requestOnly)[3]);
  }

  /** Only the sections of a composed request, sealed as they are; the rest is not looked at. */
  sealedSections(text: string): readonly SealedDigest[] {
    return parsedBody("a composed request", text, sectionsOnly)[2];
  }

  /** What a record of kind `reported` says. */
  encodeReported(report: EngineReport): string {
    return JSON.stringify([FORMAT, report] satisfies z.output<typeof reported>);
  }

  decodeReported(text: string): EngineReport {
    return parsedBody("a report", text, reported)[1];
  }

  /** What a record of kind `forgotten` says: digests of sections that earlier turns render to since. */
  encodeForgotten(sections: readonly Digest[]): string {
    const sealed = sections.map((section) => this.digests.seal(section));
    return JSON.stringify([FORMAT, sealed] satisfies z.output<typeof forgotten>);
  }

  decodeForgotten(text: string): Digest[] {
    return this.sealedForgotten(text).map((section) => this.digests.open(section));
  }

  /** The same, sealed as they are. */
  sealedForgotten(text: string): readonly SealedDigest[] {
    return parsedBody("a forgotten memory", text, forgotten)[1];
  }

  #request(request: PackedRequest): AnsweredBody | null {
    if (request === 0) return null;
    const [body, answer] = request;
    return { body: this.digests.open(body), answer: unpackAnswer(answer) };
  }
}
