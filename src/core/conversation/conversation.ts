/*
 * conversation: append-only prompts. Turns form a tree; what they injected is replayed byte for byte.
 * Enters: stored turns. Leaves: which of a prompt's blocks are current, and what later prompts keep of what a turn injects (retention).
 */

import { WITHDRAWN } from "../blocks/context-block.js";
import {
  type Annotation,
  type InjectedBlock,
  type Injection,
  isEmptyInjection,
  labelsIn,
  NOTHING_INJECTED,
  type SectionPlacement,
} from "../prompt/section.js";
import { keptIn } from "../text/collections.js";
import type { ConversationId, Digest, Label, TurnId } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";

/** How often the turns of a conversation retrieved the same blocks again: predicts how many blocks of a later retrieval will be new. */
export class SeenRetrievals {
  readonly #counts = new Map<Label, number>();
  #turns = 0;
  #again = 0;
  #pairs = 0;

  get turns(): number {
    return this.#turns;
  }

  /** Distinct blocks retrieved. */
  get size(): number {
    return this.#counts.size;
  }

  /** Turns that retrieved the block. */
  of(label: Label): number {
    return this.#counts.get(label) ?? 0;
  }

  /** Records the distinct blocks that the next turn retrieved. */
  take(labels: readonly Label[]): void {
    const { again, pairs } = this.with(labels);
    this.#again = again;
    this.#pairs = pairs;
    this.#turns++;
    for (const label of labels) this.#counts.set(label, this.of(label) + 1);
  }

  /**
   * The counts with one more turn that retrieved these blocks. `pairs`: pairs of an earlier turn and a block of a later turn. `again`:
   * those in which the earlier turn had retrieved the block too.
   */
  with(labels: readonly Label[]): { readonly again: number; readonly pairs: number } {
    let again = this.#again;
    for (const label of labels) again += this.of(label);
    return { again, pairs: this.#pairs + this.#turns * labels.length };
  }
}

/** Turns that are added before a conversation is loaded again, besides as many as were loaded. */
const MOST_ADDED = 2_000;

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

  /** @param turns those that a store loaded: of a long conversation the newest */
  constructor(turns: readonly Turn[]) {
    this.#loaded = turns.length;
    for (const turn of turns) this.add(turn);
  }

  /** Whether so many turns were added that loading it again leaves many out. */
  get isOvergrown(): boolean {
    return this.#turns.size > 2 * this.#loaded + MOST_ADDED;
  }

  /** Estimated bytes of memory. */
  get weight(): number {
    return 1_000 * this.#turns.size + 2 * this.#sectionLength + 100 * this.#seen.retrievals.size;
  }

  /** A turn's last replay. */
  replayOf(id: TurnId): ReplayedTurn | undefined {
    return this.#replayed.get(id);
  }

  rememberReplay(id: TurnId, replayed: ReplayedTurn): void {
    this.#sectionLength += replayed.section.length - (this.#replayed.get(id)?.section.length ?? 0);
    this.#replayed.set(id, replayed);
  }

  /** The turn that was added last; undefined for none. */
  get newest(): Turn | undefined {
    return this.#newest;
  }

  add(turn: Turn): void {
    this.#newest = turn;
    this.#turns.set(turn.id, turn);
    keptIn(this.#children, turn.parent, () => []).push(turn);
  }

  /**
   * What the turns of one path, first to last, retrieved. The result is valid until the next call, which extends it by further turns of the
   * path.
   */
  seenOn(path: readonly Turn[]): SeenRetrievals {
    let { upTo, retrievals } = this.#seen;
    let at = path.findIndex(({ id }) => id === upTo) + 1;
    if (at === 0) retrievals = new SeenRetrievals();
    for (; at < path.length; at++) retrievals.take(path[at]?.requested ?? []);
    upTo = path.at(-1)?.id ?? null;
    this.#seen = { upTo, retrievals };
    return retrievals;
  }

  /** The first turn of a turn's path; the turn itself where it has no parent. */
  epochOf(turn: TurnId, parent: TurnId | null): TurnId {
    return (parent === null ? undefined : this.#turns.get(parent)?.epoch) ?? turn;
  }

  /** All turns, in order of creation. */
  get turns(): Iterable<Turn> {
    return this.#turns.values();
  }

  /** For each place where a message of this meaning was said: what was said before and after it, at most `near` messages each. O(turns). */
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

  /** Children of `parent`, oldest first. */
  childrenOf(parent: TurnId | null): readonly Turn[] {
    return this.#children.get(parent) ?? [];
  }
}

/** What the replayed part of a prompt says about its blocks. */
export interface Standing {
  /** Labels whose text is in the prompt. */
  readonly given: ReadonlySet<Label>;
  /** Labels that the prompt declares superseded, with their successors; {@link WITHDRAWN} where it says that they no longer hold. */
  readonly replaced: ReadonlyMap<Label, Label>;
  /** Labels that its last section gives or names. */
  readonly newest: ReadonlySet<Label>;
}

/** What a prompt without turns says. */
export const NOTHING_STANDING: Standing = { given: new Set(), replaced: new Map(), newest: new Set() };

/** Reads the injections of a prompt's turns in order. */
export function standingOf(injections: Iterable<Injection>): Standing {
  let newest: Injection = NOTHING_INJECTED;
  const given = new Set<Label>();
  const replaced = new Map<Label, Label>();
  const takePlace = (label: Label, of: readonly Label[]) => {
    replaced.delete(label);
    for (const old of of) replaced.set(old, label);
  };
  for (const injection of injections) {
    const { blocks, annotations } = injection;
    if (!isEmptyInjection(injection)) newest = injection;
    for (const block of blocks) {
      given.add(block.label);
      takePlace(block.label, block.replaces);
    }
    for (const annotation of annotations) {
      if (annotation.kind === "restored") takePlace(annotation.label, annotation.replaces);
      if (annotation.kind === "withdrawn") for (const old of annotation.labels) replaced.set(old, WITHDRAWN);
      // Where no block of the section takes its place, or that one was forgotten.
      if (annotation.kind === "outdated")
        for (const old of annotation.labels) if (!replaced.has(old)) replaced.set(old, WITHDRAWN);
    }
  }
  return { given, replaced, newest: labelsIn(newest) };
}

/**
 * The part of a conversation that one composed prompt added. Turns form a tree: a regenerated or edited question is another child of the
 * same parent, so returning to an earlier branch reproduces its bytes. A single prompt is a turn without conversation and parent.
 */
export interface Turn extends RetentionChoice {
  readonly id: TurnId;
  readonly conversationId: ConversationId | null;
  readonly parent: TurnId | null;
  /** Digests of the plain messages since the parent's; the last one is the turn's question or tool result. */
  readonly given: readonly Digest[];
  /**
   * Digests of the same messages' meanings, by which messages that a client sends back in another form are recognised; see
   * `meaningDigest`.
   */
  readonly meant: readonly Digest[];
  readonly placement: SectionPlacement;
  readonly injection: Injection;
  /** Distinct retrieved blocks; empty for a single prompt, which nothing continues. */
  readonly requested: readonly Label[];
  /** Digest of the instructions (system messages) at the head of the prompt. */
  readonly head: Digest;
  /** Rolling digest of every message of the prompt as sent: equal digests, equal bytes. */
  readonly prompt: Digest;
  /** Digest of the prompt before this turn's blocks; the context index keys served sequences by it. */
  readonly anchor: Digest;
  /** Estimated tokens of the whole prompt as sent; 0 for a restated turn, of which no prompt was sent. */
  readonly promptTokens: number;
  /** Those of them that the engine had to compute, the answer before the question not counted. */
  readonly computedTokens: number;
  /** The first turn of its path: the turn with which its epoch began. */
  readonly epoch: TurnId;
  /** Digest of the meaning of the message before its given ones that memprefix left out of the prompt; null: none was. */
  readonly behind: Digest | null;
}

/** A turn with the plain messages that it added. */
export interface SpokenTurn {
  readonly turn: Turn;
  readonly given: readonly ChatMessage[];
}

/** A section of a prompt, identified by the digest of everything before it. */
export interface PromptSection {
  /** Rolling digest of the prompt before the section's message. */
  readonly anchor: Digest;
  readonly blocks: readonly InjectedBlock[];
  /** Tokens before it … */
  readonly before: number;
  /** … and to the end of its turn. */
  readonly end: number;
  /** The turn that sent the prompt byte for byte up to here; null for none. */
  readonly sentBy: TurnId | null;
  /** Of blocks with labels: the anchor of sections without, which have the same before their blocks. Default: the section's own. */
  readonly sharedAnchor?: Digest | null;
}

/** What a turn added when it was replayed; the same after the same prefix, because the text of a label never changes. */
export interface ReplayedTurn extends PromptSection {
  /** Rolling digest of the prompt before the turn. */
  readonly prefix: Digest;
  /** The kept part of the turn's injection. */
  readonly injection: Injection;
  readonly section: string;
  /** Rolling digest of the prompt after the turn. */
  readonly after: Digest;
  /** Estimated. */
  readonly tokens: {
    /** Plain messages before the question: the answer to the previous turn. A tool's result also counts here. */
    readonly answer: number;
    readonly section: number;
    /** The question's own text; 0 if the turn ends with a tool's result. */
    readonly question: number;
  };
}

/**
 * What later prompts of a conversation keep of a turn's injection (docs/internals/algorithms.md, "Conversations"):
 * - `keep`: everything; prompts are append-only. Fewest tokens to compute, but every new token attends over what is kept.
 * - `volatile`: the blocks; annotations are dropped, so the question and answer after them are recomputed once.
 * - `ephemeral`: nothing; memories are in the newest message only and are recomputed in every turn.
 */
export const FIXED_RETENTIONS = ["keep", "volatile", "ephemeral"] as const;
export type FixedRetention = (typeof FIXED_RETENTIONS)[number];

/** The selectable retentions; `auto` chooses one per turn by the engine's cost model. */
export const RETENTION_NAMES = [...FIXED_RETENTIONS, "auto"] as const;
export type RetentionName = (typeof RETENTION_NAMES)[number];

/** What costs least, whatever the engine is and however many share its cache. */
export const DEFAULT_RETENTION: RetentionName = "auto";

/** The retention of a turn, and whether it starts afresh. */
export interface RetentionChoice {
  /** For this turn's injection. */
  readonly retention: FixedRetention;
  /** Whether what earlier turns injected is dropped from this prompt on; what is still wanted is injected again. */
  readonly freshStart: boolean;
  /**
   * The sections of so many turns, the first of the path, stay at a fresh start: what is cached there is not computed again. Turns, because
   * forgetting may empty a section.
   */
  readonly keptTurns: number;
}

/**
 * Why a prompt starts afresh: it costs less than to go on, the prompt outgrew its share of the engine's cache or its limit, or the stored
 * history ends before a memory that was forgotten.
 */
export const FRESH_START_REASONS = ["cost", "share", "limit", "memory_forgotten"] as const;
export type FreshStartReason = (typeof FRESH_START_REASONS)[number];

/** A retention as it was chosen for one prompt. */
export interface ChosenRetention extends RetentionChoice {
  /** Null: it does not start afresh. */
  readonly freshStartReason: FreshStartReason | null;
}

/**
 * The part of an injection that later prompts keep. Lines that correct an earlier line stay under every retention, because the earlier line
 * may stay too: blocks that supersede another, and annotations that declare a text current again or no longer true.
 */
export function retained({ blocks, annotations }: Injection, retention: FixedRetention): Injection {
  if (retention === "keep") return { blocks, annotations };
  return {
    blocks: retention === "volatile" ? blocks : blocks.filter(({ replaces }) => replaces.length > 0),
    annotations: annotations.filter(({ kind }) => CORRECTING.has(kind)),
  };
}

const CORRECTING: ReadonlySet<Annotation["kind"]> = new Set(["restored", "withdrawn", "outdated"]);

/** What a prompt drops of what its earlier turns injected. */
export type Dropping = Pick<RetentionChoice, "freshStart" | "keptTurns">;

export const DROPS_NOTHING = { freshStart: false, keptTurns: 0, freshStartReason: null } as const;

/** The kept injections of a prompt's earlier turns, one per turn; empty for those that this or an earlier fresh start dropped. */
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
