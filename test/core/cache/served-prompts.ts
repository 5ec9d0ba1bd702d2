import fc from "fast-check";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import type { IndexNode } from "../../../src/core/cache/index-node.js";
import { type ResidencyModel, type SectionTokens, serve } from "../../../src/core/cache/residency.js";
import type { Digest, Label, NodeId, TurnId } from "../../../src/core/text/ids.js";
import { anySequence, HERE, isHeld, label } from "./served-sequences.js";

/** Something that happens to an index whose prompts have times and tokens, and may extend each other. */
export type PromptEvent =
  | {
      readonly kind: "serve";
      readonly follows: number | null;
      readonly labels: readonly Label[];
      readonly after: number;
    }
  | { readonly kind: "evict"; readonly nth: number }
  | { readonly kind: "lose"; readonly nth: number; readonly tokens: number }
  | {
      readonly kind: "report";
      readonly nth: number;
      readonly hit: number;
      readonly after: number;
      readonly inFlight: number;
    }
  | { readonly kind: "forget"; readonly labels: readonly Label[] };

const after = fc.integer({ min: 0, max: 5_000 });
const nth = fc.nat({ max: 30 });

/** Mostly serving; half of the prompts extend an earlier one, if there is one. */
export const anyPromptEvents: fc.Arbitrary<PromptEvent[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("serve" as const),
        follows: fc.option(nth),
        labels: anySequence,
        after,
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("evict" as const), nth }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("lose" as const), nth, tokens: fc.nat({ max: 80 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("report" as const),
        nth,
        hit: fc.nat({ max: 80 }),
        after,
        inFlight: fc.constantFrom(0, 3_000),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("forget" as const),
        labels: fc.uniqueArray(fc.integer({ min: 1, max: 8 }).map(label), { minLength: 1, maxLength: 2 }),
      }),
    },
  ),
  { maxLength: 25 },
);

/** Tokens of a block, for tests: no two alike. */
export const blockTokens = (block: Label): number => 2 * block + 1;
export const HEAD_TOKENS = 10;
const BETWEEN_TOKENS = 7;
const BEHIND_TOKENS = 4;

/** One prompt that was served. */
export interface PromptServed {
  readonly anchor: Digest;
  readonly labels: readonly Label[];
  readonly node: NodeId;
  readonly clock: number;
  readonly at: number;
  /** Of the whole prompt. */
  readonly tokens: number;
  /** Before its blocks. */
  readonly tokensBefore: number;
  /** The prompt that it extends. */
  readonly before: PromptServed | null;
  /** Tokens that were expected to hit. */
  readonly expected: number;
}

function sectionOf(anchor: Digest, labels: readonly Label[], before: number, turn: PromptServed | null): SectionTokens {
  const upTo = (blocks: number) => labels.slice(0, blocks).reduce((sum, block) => sum + blockTokens(block), before);
  const end = upTo(labels.length) + BEHIND_TOKENS;
  const sentBy = turn === null ? null : (turn.clock as TurnId);
  return { anchor, labels, upTo, before, behind: BEHIND_TOKENS, end, sentBy };
}

/** An index under a residency model, with a store under it that applies what each step drained. */
export class ServedPrompts {
  readonly served: PromptServed[] = [];
  readonly rows = new Map<NodeId, IndexNode>();
  index: ContextIndex;
  now = 0;

  constructor(
    private readonly residency: ResidencyModel,
    private readonly bound = 30,
  ) {
    this.index = new ContextIndex([], 1, bound, blockTokens);
  }

  apply(event: PromptEvent): void {
    switch (event.kind) {
      case "serve":
        this.now += event.after;
        this.serve(event.labels, event.follows === null ? null : (this.served[event.follows] ?? null));
        break;
      case "evict":
        this.index.evict(this.served[event.nth]?.node ?? (0 as NodeId));
        break;
      case "lose":
        this.index.lose(this.served[event.nth]?.node ?? (0 as NodeId), event.tokens);
        break;
      case "report": {
        this.now += event.after;
        const request = this.served[event.nth];
        if (request === undefined) break;
        this.index.miss(request.node, request.clock, event.hit, request.at - event.inFlight);
        this.index.refresh(request.node, request.clock, this.now);
        break;
      }
      case "forget":
        this.index.forget(new Set(event.labels));
    }
    this.store();
  }

  /** Serves a prompt as compose does: what should be gone leaves first. */
  serve(labels: readonly Label[], before: PromptServed | null = null): PromptServed {
    this.residency.expire(this.index, this.now);
    const anchor = before === null ? HERE : (`${before.anchor}|${before.labels.join()}` as Digest);
    const tokensBefore = before === null ? HEAD_TOKENS : before.tokens + BETWEEN_TOKENS;
    const follows = before === null ? null : this.index.endOf(before.anchor, before.labels);
    const clock = this.served.length + 1;
    const sections = this.sectionsOf(anchor, labels, before);
    const known = { cachedSections: follows === null ? 0 : sections.length - 1, cachedEnd: follows, cachedTokens: 0 };
    const { leaf: node, cachedTokens } = serve(this.index, this.residency, sections, known, clock, this.now);
    const tokens = tokensBefore + labels.reduce((sum, block) => sum + blockTokens(block), 0) + BEHIND_TOKENS;
    const prompted = {
      anchor,
      labels,
      node,
      clock,
      at: this.now,
      tokens,
      tokensBefore,
      before,
      expected: cachedTokens,
    };
    this.served.push(prompted);
    this.store();
    return prompted;
  }

  holds({ anchor, labels }: PromptServed): boolean {
    return isHeld(this.index, anchor, labels);
  }

  expire(): void {
    this.residency.expire(this.index, this.now);
    this.store();
  }

  /** Reloads the index from its stored rows. */
  reload(order: (a: IndexNode, b: IndexNode) => number = (a, b) => a.id - b.id): void {
    const rows = structuredClone([...this.rows.values()]).sort(order);
    this.index = new ContextIndex(rows, this.index.nextId, this.bound, blockTokens);
  }

  /** The sections of a prompt, as compose hands them to a model. */
  private sectionsOf(anchor: Digest, labels: readonly Label[], before: PromptServed | null): SectionTokens[] {
    const sections: SectionTokens[] = [
      sectionOf(anchor, labels, before === null ? HEAD_TOKENS : before.tokens + BETWEEN_TOKENS, null),
    ];
    for (let turn = before; turn !== null; turn = turn.before)
      sections.unshift(sectionOf(turn.anchor, turn.labels, turn.tokensBefore, turn));
    return sections;
  }

  private store(): void {
    const { upserted, removed } = structuredClone(this.index.drain());
    for (const node of upserted) this.rows.set(node.id, node);
    for (const id of removed) this.rows.delete(id);
  }
}
