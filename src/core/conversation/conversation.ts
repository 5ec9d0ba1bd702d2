/* conversation: append-only prompts. Enters: stored turns. Leaves: which blocks are current, and what later prompts keep (retention). */

import type { PromptRoot } from "../prompt/prompt.js";
import {
  type InjectedBlock,
  type Injection,
  isOfMemories,
  labelsIn,
  NOTHING_INJECTED,
  type SectionPlacement,
  updatesIn,
} from "../prompt/section.js";
import type { KnownTool } from "../prompt/tools.js";
import { keptIn } from "../text/collections.js";
import type { ConversationId, Digest, Label, TurnId } from "../text/ids.js";
import { type ChatMessage, messageText } from "../text/message.js";

/** How often turns retrieved the same blocks again: predicts how many blocks of a later retrieval will be new. */
export class SeenRetrievals {
  readonly #counts = new Map<Label, number>();
  #turns = 0;
  #again = 0;
  #pairs = 0;

  get turns(): number {
    return this.#turns;
  }

  get size(): number {
    return this.#counts.size;
  }

  of(label: Label): number {
    return this.#counts.get(label) ?? 0;
  }

  take(labels: readonly Label[]): void {
    const { again, pairs } = this.with(labels);
    this.#again = again;
    this.#pairs = pairs;
    this.#turns++;
    for (const label of labels) this.#counts.set(label, this.of(label) + 1);
  }

  /** The counts with one more turn. `pairs`: of an earlier turn and a block of a later one; `again`: those where the earlier turn had it. */
  with(labels: readonly Label[]): { readonly again: number; readonly pairs: number } {
    let again = this.#again;
    for (const label of labels) again += this.of(label);
    return { again, pairs: this.#pairs + this.#turns * labels.length };
  }
}

const MOST_ADDED = 2_000;

export interface SentAfter {
  readonly root: PromptRoot;
  readonly tools: readonly KnownTool[];
}

/** The turns of one conversation, as a tree in order of creation. */
export class Conversation {
  readonly #replayed = new Map<TurnId, ReplayedTurn>();
  #sectionLength = 0;
  readonly #turns = new Map<TurnId, Turn>();
  #newest: Turn | undefined;
  readonly #children = new Map<TurnId | null, Turn[]>();
  #seen: { readonly upTo: TurnId | null; readonly retrievals: SeenRetrievals } = {
    upTo: null,
    retrievals: new SeenRetrievals(),
  };

  readonly #loaded: number;

  /**
   * @param turns as loaded from a store; of a long conversation only the newest
   * @param sentAfter null: unknown
   * @param instructions of its newest prompt; null: unknown
   */
  constructor(
    turns: readonly Turn[],
    public sentAfter: SentAfter | null = null,
    public instructions: readonly ChatMessage[] | null = null,
  ) {
    this.#loaded = turns.length;
    for (const turn of turns) this.add(turn);
  }

  get isOvergrown(): boolean {
    return this.#turns.size > 2 * this.#loaded + MOST_ADDED;
  }

  get weight(): number {
    const tools = this.sentAfter?.tools.reduce((sum, { json }) => sum + json.length, 0) ?? 0;
    const text =
      this.#sectionLength + tools + (this.instructions?.reduce((sum, one) => sum + messageText(one).length, 0) ?? 0);
    return 1_000 * this.#turns.size + 2 * text + 100 * this.#seen.retrievals.size;
  }

  replayOf(id: TurnId): ReplayedTurn | undefined {
    return this.#replayed.get(id);
  }

  rememberReplay(id: TurnId, replayed: ReplayedTurn): void {
    this.#sectionLength += replayed.section.length - (this.#replayed.get(id)?.section.length ?? 0);
    this.#replayed.set(id, replayed);
  }

  get newest(): Turn | undefined {
    return this.#newest;
  }

  add(turn: Turn): void {
    this.#newest = turn;
    this.#turns.set(turn.id, turn);
    keptIn(this.#children, turn.parent, () => []).push(turn);
  }

  /** What the turns of one path retrieved, first to last. The next call extends the result by further turns of the path. */
  seenOn(path: readonly Turn[]): SeenRetrievals {
    let { upTo, retrievals } = this.#seen;
    let at = path.findIndex(({ id }) => id === upTo) + 1;
    if (at === 0) retrievals = new SeenRetrievals();
    for (; at < path.length; at++) retrievals.take(path[at]?.requested ?? []);
    upTo = path.at(-1)?.id ?? null;
    this.#seen = { upTo, retrievals };
    return retrievals;
  }

  epochOf(turn: TurnId, parent: TurnId | null): TurnId {
    return (parent === null ? undefined : this.#turns.get(parent)?.epoch) ?? turn;
  }

  get turns(): Iterable<Turn> {
    return this.#turns.values();
  }

  /** The messages before and after each occurrence of this meaning, at most `near` on each side. O(turns). */
  *saidAround(
    meaning: Digest,
    near: number,
  ): Generator<{ readonly before: readonly Digest[]; readonly after: readonly Digest[] }> {
    for (const turn of this.#turns.values()) {
      const at = turn.meant.indexOf(meaning);
      if (at < 0) continue;
      let before = turn.meant.slice(0, at);
      for (let { parent } = turn; parent !== null && before.length < near; ) {
        const earlier = this.#turns.get(parent);
        before = [...(earlier?.meant ?? []), ...before];
        parent = earlier?.parent ?? null;
      }
      const after = turn.meant.slice(at + 1);
      const next = after.length < near ? this.childrenOf(turn.id) : [];
      const branches = next.length === 0 ? [after] : next.map(({ meant }) => [...after, ...meant]);
      for (const branch of branches) yield { before: before.slice(-near), after: branch.slice(0, near) };
    }
  }

  childrenOf(parent: TurnId | null): readonly Turn[] {
    return this.#children.get(parent) ?? [];
  }
}

export interface Standing {
  /** Labels whose text is in the prompt. */
  readonly given: ReadonlySet<Label>;
  /** Labels that the prompt declares superseded, with their successors. */
  readonly replaced: ReadonlyMap<Label, Label>;
  /** Labels in its last section, as blocks or references. */
  readonly newest: ReadonlySet<Label>;
}

export const NOTHING_STANDING: Standing = { given: new Set(), replaced: new Map(), newest: new Set() };

export function standingOf(injections: Iterable<Injection>): Standing {
  let newest: Injection = NOTHING_INJECTED;
  const given = new Set<Label>();
  const replaced = new Map<Label, Label>();
  for (const injection of injections) {
    if (isOfMemories(injection)) newest = injection;
    for (const { label } of injection.blocks) given.add(label);
    for (const { label, replaces } of updatesIn(injection)) {
      given.add(label);
      replaced.delete(label);
      for (const old of replaces) replaced.set(old, label);
    }
  }
  return { given, replaced, newest: labelsIn(newest) };
}

/** What one prompt added to a conversation. A regenerated question is another child of the same parent; a single prompt has no parent. */
export interface Turn extends RetentionChoice {
  readonly id: TurnId;
  readonly conversationId: ConversationId | null;
  readonly parent: TurnId | null;
  /** Digests of the plain messages since the parent's; the last one is the question or tool result. */
  readonly given: readonly Digest[];
  /** Digests of the same messages' meanings (`meaningDigest`), to recognise them in another form. */
  readonly meant: readonly Digest[];
  readonly placement: SectionPlacement;
  readonly injection: Injection;
  readonly requested: readonly Label[];
  readonly head: Digest;
  readonly prompt: Digest;
  /** Digest of the prompt before this turn's blocks; key of the context index. */
  readonly anchor: Digest;
  /** Estimated tokens of the whole prompt; 0 for a restated turn, which was never sent. */
  readonly promptTokens: number;
  /** Tokens that the engine had to compute, without the answer before the question. */
  readonly computedTokens: number;
  readonly epoch: TurnId;
  /** Meaning of the last message before its given ones that memprefix left out. */
  readonly behind: Digest | null;
}

export interface SpokenTurn {
  readonly turn: Turn;
  readonly given: readonly ChatMessage[];
}

export interface PromptSection {
  readonly anchor: Digest;
  readonly blocks: readonly InjectedBlock[];
  readonly before: number;
  readonly end: number;
  /** The turn that sent the same bytes up to here. */
  readonly sentBy: TurnId | null;
  /** For labelled blocks: the anchor of sections without labels, with the same bytes before. Default: its own. */
  readonly sharedAnchor?: Digest | null;
}

/** Equal prefixes give equal replays. */
export interface ReplayedTurn extends PromptSection {
  readonly prefix: Digest;
  /** The kept part of the turn's injection. */
  readonly injection: Injection;
  readonly section: string;
  readonly after: Digest;
  readonly tokens: {
    /** Plain messages before the question: the previous answer, or a tool's result. */
    readonly answer: number;
    readonly section: number;
    readonly question: number;
  };
}

/** What later prompts keep of a turn's injection (docs/retention.md): `keep` everything, `volatile` the blocks, `ephemeral` nothing. */
export const FIXED_RETENTIONS = ["keep", "volatile", "ephemeral"] as const;
export type FixedRetention = (typeof FIXED_RETENTIONS)[number];

/** `auto` chooses one per turn by the engine's cost model. */
export const RETENTION_NAMES = [...FIXED_RETENTIONS, "auto"] as const;
export type RetentionName = (typeof RETENTION_NAMES)[number];

export const DEFAULT_RETENTION: RetentionName = "auto";

export interface RetentionChoice {
  readonly retention: FixedRetention;
  /** Whether this and later prompts drop what earlier turns injected and inject again what is still needed. */
  readonly freshStart: boolean;
  /** How many first turns keep their sections at a fresh start, because they are cached. Counts turns, as forgetting may empty a section. */
  readonly keptTurns: number;
}

/** It costs less; the prompt outgrew its share of the cache, or its limit; or its history ends before a memory that was forgotten or ended. */
export const FRESH_START_REASONS = ["cost", "share", "limit", "memory_forgotten"] as const;
export type FreshStartReason = (typeof FRESH_START_REASONS)[number];

export interface ChosenRetention extends RetentionChoice {
  /** Null: it does not start afresh. */
  readonly freshStartReason: FreshStartReason | null;
}

/** The part of an injection that later prompts keep. Updates always stay, because the texts that they supersede may. */
export function retained(injection: Injection, retention: FixedRetention): Injection {
  if (retention === "keep") return injection;
  return { blocks: retention === "volatile" ? injection.blocks : [], annotations: updatesIn(injection) };
}

export type Dropping = Pick<RetentionChoice, "freshStart" | "keptTurns">;

export const DROPS_NOTHING = { freshStart: false, keptTurns: 0, freshStartReason: null } as const;

/** The kept injections of a prompt's earlier turns, one per turn; empty if a fresh start dropped them. */
export function standingInjections(turns: readonly Turn[], own: Dropping): Injection[] {
  const kept: Injection[] = [];
  const drop = ({ freshStart, keptTurns }: Dropping) => {
    if (freshStart) kept.fill(NOTHING_INJECTED, keptTurns);
  };
  for (const turn of turns) {
    drop(turn);
    kept.push(retained(turn.injection, turn.retention));
  }
  drop(own);
  return kept;
}
