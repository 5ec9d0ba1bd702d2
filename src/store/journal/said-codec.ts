import type { Digest } from "../../core/index.js";
import type { EngineReport, StoredAnswer } from "../api/store.js";
import type { DigestSeal, SealedDigest } from "../database/digest-seal.js";
import { FORMAT, unpackedBody } from "./damaged-record.js";
import { type PackedAnswer, packAnswer, unpackAnswer } from "./packed-answer.js";
import { type PackedTurn, packTurn, type SaidTurn, unpackTurn } from "./packed-turn.js";

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

/** Digest of the request's body, and the answer; 0: no request. */
type PackedRequest = 0 | readonly [SealedDigest, PackedAnswer];
type PackedComposed = readonly [
  typeof FORMAT,
  turns: readonly PackedTurn[],
  sections: readonly SealedDigest[],
  PackedRequest,
];
type PackedReport = readonly [typeof FORMAT, EngineReport];
type PackedForgotten = readonly [typeof FORMAT, readonly SealedDigest[]];

/**
 * What records say, as text. Digests are sealed; a message's are computed again from it, unless it was erased. Text that this did not write
 * is a `DamagedRecordError`.
 */
export class SaidCodec {
  constructor(private readonly digests: DigestSeal) {}

  encodeComposed({ turns, sections, request }: ComposedRecord): string {
    const { digests } = this;
    const packed: PackedComposed = [
      FORMAT,
      turns.map((said) => packTurn(said, digests)),
      sections.map((section) => digests.seal(section)),
      request === null ? 0 : [digests.seal(request.body), packAnswer(request.answer)],
    ];
    return JSON.stringify(packed);
  }

  decodeComposed(text: string): ComposedRecord {
    return this.#composed(text, ([, turns, sections, request]) => ({
      turns: turns.map((turn) => unpackTurn(turn, this.digests)),
      sections: sections.map((section) => this.digests.open(section)),
      request: this.#request(request),
    }));
  }

  /** Only its turns. */
  decodeTurns(text: string): SaidTurn[] {
    return this.#composed(text, ([, turns]) => turns.map((turn) => unpackTurn(turn, this.digests)));
  }

  /** Only its request. */
  decodeRequest(text: string): AnsweredBody | null {
    return this.#composed(text, ([, , , request]) => this.#request(request));
  }

  /** Only the sections of a composed request, sealed as they are. */
  sealedSections(text: string): readonly SealedDigest[] {
    return this.#composed(text, ([, , sections]) => sections);
  }

  /** What a record of kind `reported` says. */
  encodeReported(report: EngineReport): string {
    return JSON.stringify([FORMAT, report] satisfies PackedReport);
  }

  decodeReported(text: string): EngineReport {
    return unpackedBody("a report", text, ([, report]: PackedReport) => report);
  }

  /** What a record of kind `forgotten` says: digests of sections that earlier turns render to since. */
  encodeForgotten(sections: readonly Digest[]): string {
    const sealed = sections.map((section) => this.digests.seal(section));
    return JSON.stringify([FORMAT, sealed] satisfies PackedForgotten);
  }

  decodeForgotten(text: string): Digest[] {
    return this.sealedForgotten(text).map((section) => this.digests.open(section));
  }

  /** The same, sealed as they are. */
  sealedForgotten(text: string): readonly SealedDigest[] {
    return unpackedBody("a forgotten memory", text, ([, sections]: PackedForgotten) => sections);
  }

  #composed<T>(text: string, unpack: (packed: PackedComposed) => T): T {
    return unpackedBody("a composed request", text, unpack);
  }

  #request(request: PackedRequest): AnsweredBody | null {
    if (request === 0) return null;
    const [body, answer] = request;
    return { body: this.digests.open(body), answer: unpackAnswer(answer) };
  }
}
