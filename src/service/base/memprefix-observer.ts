import {
  type ConversationId,
  type CountedPrompt,
  LruMap,
  type RequestId,
  type Scope,
  type Warning,
} from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import { type Upstream, UpstreamError, type UpstreamFailure } from "../../engines/upstream/upstream.js";
import type { MemorySourceFailure } from "../../memory/memory-source.js";
import type { Feedback } from "./call-types.js";

/** External parts that memprefix can work without. */
export const PARTS = ["memory_search", "memory_writes", "engine", "store"] as const;
export type PartName = (typeof PARTS)[number];

/** A part that failed at its last use. */
export interface DegradedPart {
  readonly part: PartName;
  /** Public: no external text, no address. */
  readonly reason: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

export interface PartFailure {
  readonly part: PartName;
  /** For the log: with the other side's message, without secrets and memory texts. */
  readonly cause: string;
  /** Whether only this request was refused, so the part itself works. */
  readonly isOfRequest: boolean;
}

export interface PartObserver {
  failed(failure: PartFailure): void;
  recovered(part: PartName): void;
}

/** Most causes of refused requests that are remembered as reported. */
const MOST_REFUSALS = 200;

/** The failing parts, for all tenants. Reports each reason once, and recovery; a refusal of single requests once per cause, as no failing part. */
export class DegradedParts {
  readonly #failing = new Map<PartName, DegradedPart>();
  readonly #refused = new LruMap<string, true>(MOST_REFUSALS);

  constructor(
    private readonly observer: PartObserver,
    private readonly now: () => number,
  ) {}

  get list(): readonly DegradedPart[] {
    return PARTS.flatMap((name) => this.#failing.get(name) ?? []);
  }

  /** Reports a cause if its reason is not the part's already. */
  failed(part: PartName, reason: string, cause = reason): void {
    if (this.#failing.get(part)?.reason === reason) return;
    this.#failing.set(part, { part, reason, since: this.now() });
    this.observer.failed({ part, cause, isOfRequest: false });
  }

  refused(part: PartName, cause: string): void {
    const refusal = `${part} ${cause}`;
    if (this.#refused.get(refusal)) return;
    this.#refused.set(refusal, true);
    this.observer.failed({ part, cause, isOfRequest: true });
  }

  worked(part: PartName): void {
    if (this.#failing.delete(part)) this.observer.recovered(part);
  }
}

export interface MemorySearch {
  readonly outcome: "ok" | MemorySourceFailure["kind"];
  readonly ms: number;
}

/** One call to the engine; a status below 400 is `ok`. */
export interface EngineCall {
  readonly outcome: "ok" | "client_error" | "server_error" | UpstreamFailure["kind"];
  /** Milliseconds to the answer's first byte, or to the failure. */
  readonly ms: number;
}

export interface EngineFault {
  /** Public; `cause` is for the log. */
  readonly reason: string;
  readonly cause: string;
}

/** A composed prompt, as statistics count it: without text. */
export interface ObservedCompose extends CountedPrompt {
  readonly scope: Scope;
  readonly requestId: RequestId;
  readonly conversationId: ConversationId | null;
  readonly at: number;
  readonly engine: EngineName;
  readonly warnings: readonly Warning[];
}

/** Observes what a service does, for all tenants. */
export interface MemprefixObserver {
  /** Called once a prompt is stored; not for repeated answers. */
  composed?(answer: ObservedCompose): void;
  /** `firstTokenMs`: null where it was not reported, or before. */
  reported?(feedback: Feedback, firstTokenMs: number | null): void;
  searched?(search: MemorySearch): void;
  /** Mem0 called its own model. */
  wrote?(call: { readonly promptTokens: number; readonly cachedTokens: number | null }): void;
  /** Called once per cause. */
  failed?(failure: PartFailure): void;
  recovered?(part: PartName): void;
}

export class Observers implements Required<MemprefixObserver> {
  readonly #all = new Set<MemprefixObserver>();

  /** @returns removes the observer */
  add(observer: MemprefixObserver): () => void {
    this.#all.add(observer);
    return () => this.#all.delete(observer);
  }

  readonly composed = this.#toAll("composed");
  readonly reported = this.#toAll("reported");
  readonly searched = this.#toAll("searched");
  readonly wrote = this.#toAll("wrote");
  readonly failed = this.#toAll("failed");
  readonly recovered = this.#toAll("recovered");

  #toAll<Name extends keyof MemprefixObserver>(name: Name): Required<MemprefixObserver>[Name] {
    return (...of: readonly unknown[]) => {
      for (const observer of this.#all) if (observer[name]) Reflect.apply(observer[name], observer, of);
    };
  }
}

/** Statuses with which an engine rejects a key, or the account that pays for it. */
const KEY_REFUSED: ReadonlySet<number> = new Set([401, 402]);

interface UpstreamObserver {
  called(call: EngineCall): void;
  /** Called when an answer was read to its end, or failed; not when the client ended it. */
  ended(failure: EngineFault | null): void;
  readonly clock: () => number;
}

/** An upstream with observed calls, warm-ups included: time to first byte, and how they end. Not for background calls. */
export function observedUpstream(
  { upstream, hasOwnKey = false }: { readonly upstream: Upstream; readonly hasOwnKey?: boolean },
  { called, ended, clock }: UpstreamObserver,
): Upstream {
  const reasonOf = (status: number): string | null => {
    if (hasOwnKey && KEY_REFUSED.has(status))
      return `the upstream engine refused memprefix's own key with status ${status}`;
    return status >= 500 ? `the upstream engine answered with status ${status}` : null;
  };
  const failedWith = ({ failure, message: cause }: UpstreamError) => {
    if (failure.kind !== "aborted") ended({ reason: cause.replace(` at ${upstream.name}`, ""), cause });
  };
  return {
    name: upstream.name,
    async send(call, signal) {
      if (call.isBackground === true) return upstream.send(call, signal);
      const start = clock();
      try {
        const answer = await upstream.send(call, signal);
        called({ outcome: outcomeOf(answer.status), ms: clock() - start });
        const reason = reasonOf(answer.status);
        if (reason === null) return { ...answer, body: new ObservedBody(answer.body, () => ended(null), failedWith) };
        ended({ reason, cause: reason });
        return answer;
      } catch (error) {
        if (error instanceof UpstreamError) {
          called({ outcome: error.failure.kind, ms: clock() - start });
          failedWith(error);
        }
        throw error;
      }
    },
  };
}

/** An answer's bytes, unmodified. Not a generator: ending it before the first read must end the answer too. */
class ObservedBody implements AsyncIterableIterator<Uint8Array> {
  readonly #bytes: AsyncIterator<Uint8Array>;

  constructor(
    body: AsyncIterable<Uint8Array>,
    private readonly onEnd: () => void,
    private readonly onFailed: (error: UpstreamError) => void,
  ) {
    this.#bytes = body[Symbol.asyncIterator]();
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    try {
      const read = await this.#bytes.next();
      if (read.done === true) this.onEnd();
      return read;
    } catch (error) {
      if (error instanceof UpstreamError) this.onFailed(error);
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    return (await this.#bytes.return?.()) ?? { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function outcomeOf(status: number): EngineCall["outcome"] {
  if (status >= 500) return "server_error";
  return status >= 400 ? "client_error" : "ok";
}
