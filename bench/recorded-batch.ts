import type { PrefixCache } from "../src/core/cache/simulated-cache.js";
import {
  type BatchPlanner,
  type BatchRequest,
  type Label,
  planBatch,
  renderBlock,
  SECTION_CLOSING,
  SECTION_OPENING,
} from "../src/core/index.js";
import { chatTokenizer, type Encode } from "../src/eval/base/chat-tokens.js";
import { INSTRUCTION } from "../src/eval/base/hand-built.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";

export interface ExecutedRequest {
  readonly request: number;
  readonly order: readonly Label[];
}

/** All questions of some users as one batch, in order, user after user. Users share no blocks. */
export class RecordedBatch {
  readonly requests: readonly BatchRequest[];
  readonly promptTokens: number;
  /** Tokens of each memory's line, counted once. */
  readonly memoryTokens: number;
  /** The trace of each request. */
  readonly users: readonly number[];
  /** Tokens after each request's memories; of each trace's memories; and before them. */
  readonly questions: readonly (readonly number[])[];
  readonly lines: readonly (readonly (readonly number[])[])[];
  readonly before: readonly number[];

  constructor(traces: readonly RecordedTrace[], k: number, encode: Encode) {
    const tokenize = chatTokenizer(encode);
    const lineOf = (memory: string, label: number) => encode(renderBlock({ label: label as Label }, memory));
    this.lines = traces.map(({ memories }) => memories.map(({ memory }, at) => lineOf(memory, at + 1)));
    this.memoryTokens = this.lines.flat().reduce((sum, { length }) => sum + length, 0);
    this.before = [...tokenize([{ role: "system", content: INSTRUCTION }]), ...encode(SECTION_OPENING)];
    this.users = traces.flatMap(({ questions }, user) => questions.map(() => user));
    this.questions = traces.flatMap(({ questions }) =>
      questions.map(({ question }) => encode(SECTION_CLOSING + question)),
    );
    this.requests = traces.flatMap(({ questions }, user) =>
      questions.map(({ retrieved }) => ({
        key: `user ${user}`,
        blocks: retrieved.slice(0, k).map((at) => ({
          label: (at + 1) as Label,
          tokens: this.lines[user]?.[at]?.length ?? 0,
        })),
      })),
    );
    this.promptTokens = this.requests.reduce((sum, { blocks }, request) => {
      const order = blocks.map(({ label }) => label);
      return sum + this.promptOf({ request, order }).length;
    }, 0);
  }

  /** Encoded line by line, so that a line's tokens do not depend on its neighbours. */
  promptOf({ request, order }: ExecutedRequest): readonly number[] {
    const lines = this.lines[this.users[request] ?? -1];
    return [...this.before, ...order.flatMap((label) => lines?.[label - 1] ?? []), ...(this.questions[request] ?? [])];
  }

  /** In the original order with blocks as retrieved, or by a planner that knows all requests. */
  executedBy(arm: "retrieval" | BatchPlanner): readonly ExecutedRequest[] {
    if (arm !== "retrieval") return planBatch(this.requests, arm).requests;
    return this.requests.map(({ blocks }, request) => ({ request, order: blocks.map(({ label }) => label) }));
  }

  /** memprefix's planner and ContextPilot's, and each one's orders under the other's schedule. */
  executedByPlanners(): ReadonlyMap<string, readonly ExecutedRequest[]> {
    const theirs = this.executedBy("context-pilot");
    const ours = this.executedBy("shared-prefixes");
    return new Map([
      ["Alg. 4 + 5", theirs],
      ["shared prefixes", ours],
      ["our orders, Alg. 5's sequence", sequenced(theirs, ours)],
      ["Alg. 4's orders, our sequence", sequenced(ours, theirs)],
    ]);
  }

  /** Share of prompt tokens that an empty cache hits, one prompt at a time. */
  hitRatio(executed: readonly ExecutedRequest[], cache: PrefixCache): number {
    let cached = 0;
    let all = 0;
    for (const each of executed) {
      const tokens = this.promptOf(each);
      cached += cache.serve(tokens);
      all += tokens.length;
    }
    return cached / all;
  }
}

/** The orders of one plan, executed in the sequence of another. */
function sequenced(sequence: readonly ExecutedRequest[], orders: readonly ExecutedRequest[]): ExecutedRequest[] {
  const orderOf = new Map(orders.map(({ request, order }) => [request, order]));
  return sequence.map(({ request }) => ({ request, order: orderOf.get(request) ?? [] }));
}
