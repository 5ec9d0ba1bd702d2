import type { BlockRegister } from "../blocks/block-register.js";
import { ownTurn, type SpokenTurn, type StoredPrompt } from "../compose/plan.js";
import { standingInjections, type Turn } from "../conversation/conversation.js";
import { closingTokens } from "../conversation/injecting.js";
import { anchorAfter, digestAfter, digestAfterTurn, tokensBeforeSection } from "../prompt/prompt.js";
import {
  type Annotation,
  hasLabels,
  type InjectedBlock,
  type Injection,
  isEmptyInjection,
  isOwnMessage,
  renderAnnotation,
  renderSection,
  SECTION_OPENING,
  type TextOf,
} from "../prompt/section.js";
import { keptIn } from "../text/collections.js";
import type { Digest, TurnId } from "../text/ids.js";
import { type ChatMessage, fixedTokens, messageDigest, type TokenCounter } from "../text/message.js";

interface InTurn {
  /** Null: at the head of the prompt. */
  readonly turn: TurnId | null;
  /** The message's index among those that the turn adds. */
  readonly offset: number;
  /** Two segments with equal keys after equal prefixes are the same bytes. */
  readonly key: string;
}

/** A plain message, or the part of it after a section. */
export interface MessageSegment extends InTurn {
  readonly kind: "instructions" | "message";
  readonly digest: Digest;
  /** Null if it was erased. */
  readonly plain: ChatMessage | null;
  /** Whether a section follows inside the message, so that the message is not complete. */
  readonly isOpen?: boolean;
}

/** A part of a section that is either kept or changed as a whole. */
export type SectionSegment = InTurn &
  (
    | { readonly kind: "opening" }
    | { readonly kind: "block"; readonly block: InjectedBlock }
    | { readonly kind: "annotation"; readonly annotation: Annotation }
    | { readonly kind: "closing"; readonly placement: Turn["placement"] }
  );

/** The place of a section that has lost a forgotten memory: its labels are gone, so it cannot be rebuilt. */
export type ErasedSegment = InTurn & { readonly kind: "erased" };

/** The unit in which prompts are compared. */
export type Segment = MessageSegment | SectionSegment | ErasedSegment;

/** A prompt's structure without texts. */
export interface Outline {
  readonly segments: readonly Segment[];
  /** Index of each segment's message, from 0. */
  readonly messages: readonly number[];
  /** For each turn, by the number of segments before its section: whether a prompt with exactly this prefix was served. */
  readonly anchors: ReadonlyMap<number, boolean>;
  /** The same, by the number of segments up to the turn's end. */
  readonly ends: ReadonlyMap<number, boolean>;
}

/** One turn's part of a prompt. */
interface OutlinedTurn extends SpokenTurn {
  readonly injection: Injection;
  readonly standing: "own" | "kept" | "none";
}

/** The first turn of a prompt whose section has lost a memory since the prompt was sent. */
interface ErasedTurn {
  readonly part: number;
  /** Equal if the two sections were the same bytes when sent. */
  readonly key: string;
  /** Whether the prompt certainly contained the turn's section. */
  readonly isCertain: boolean;
}

/**
 * Outlines stored prompts for comparison. Turns that prompts share are outlined once, so all prompts of a long conversation cost little
 * more than one: use one instance for all of them.
 */
export class PromptOutlines {
  readonly #segments = new Map<string, readonly Segment[]>();
  readonly #digests = new Map<string, Digest>();
  readonly #erasures = new Map<TurnId, ErasedTurn | null>();

  constructor(private readonly textOf: TextOf) {}

  outlineOf(prompt: Pick<StoredPrompt, "turns" | "head">): Outline {
    const { head } = ownTurn(prompt);
    const parts = this.#partsOf(prompt.turns);
    const erasure = this.#erasureIn(parts);
    const segments: Segment[] = [...headSegments(prompt.head, head)];
    const messages = segments.map(({ offset }) => offset);
    const anchors = new Map<number, boolean>();
    const ends = new Map<number, boolean>();
    let count = segments.length;
    let digest = head;
    for (const [at, part] of parts.entries()) {
      const before = segments.length;
      const added = at === erasure?.part ? erasedSegments(part, erasure) : this.#segmentsOf(part);
      for (const segment of added) {
        segments.push(segment);
        messages.push(count + segment.offset);
      }
      const { turn } = part;
      anchors.set(before + answersIn(turn.given, turn.placement), this.#anchorOf(part, digest) === turn.anchor);
      digest = this.#after(part, digest);
      ends.set(segments.length, digest === turn.prompt);
      const last = segments.at(-1);
      count += segments.length === before ? 0 : (last?.offset ?? 0) + 1;
    }
    return { segments, messages, anchors, ends };
  }

  #partsOf(turns: readonly SpokenTurn[]): OutlinedTurn[] {
    const own = ownTurn({ turns });
    const earlier = turns.slice(0, -1);
    const standing = standingInjections(
      earlier.map(({ turn }) => turn),
      own,
    );
    return turns.map((spoken, at): OutlinedTurn => {
      const injection = standing[at];
      if (injection === undefined) return { ...spoken, injection: own.injection, standing: "own" };
      return { ...spoken, injection, standing: isEmptyInjection(injection) ? "none" : "kept" };
    });
  }

  /**
   * Where the prompt has lost a memory since it was sent; null for nowhere. Found by comparing digests, as in replay. If the prompt extends
   * its parent's as sent, the parent's erasure is its own. Otherwise it is assumed at the first turn that lost a memory, which is never too
   * late, and with a key that matches no other prompt's.
   */
  #erasureIn(parts: readonly OutlinedTurn[]): ErasedTurn | null {
    const last = parts.length - 1;
    const own = parts[last];
    if (own === undefined) return null;
    return keptIn(this.#erasures, own.turn.id, () => this.#findErasure(parts, own, last));
  }

  #findErasure(parts: readonly OutlinedTurn[], own: OutlinedTurn, last: number): ErasedTurn | null {
    let before = own.turn.head;
    for (const part of parts.slice(0, -1)) before = this.#after(part, before);
    if (this.#after(own, before) === own.turn.prompt) return null;
    const key = `?${own.turn.id}`;
    if (this.#anchorOf(own, before) === own.turn.anchor) return { part: last, key, isCertain: true };
    const parent = parts[last - 1]?.turn;
    if (parent !== undefined && this.#anchorOf(own, parent.prompt) === own.turn.anchor) {
      const inherited = this.#erasureIn(this.#partsOf(parts.slice(0, -1)));
      if (inherited !== null) return inherited;
    }
    const start = parts.findLastIndex(({ turn }) => turn.freshStart && turn.keptTurns === 0);
    const isErased = (at: number) => this.#erasureIn(this.#partsOf(parts.slice(0, at + 1))) !== null;
    const first = parts.findIndex((_, at) => at >= start && at < last && isErased(at));
    return { part: first < 0 ? last : first, key, isCertain: false };
  }

  #after({ turn, injection, standing }: OutlinedTurn, before: Digest): Digest {
    return keptIn(this.#digests, `${before} ${turn.id} ${standing}`, () =>
      digestAfterTurn(before, turn.given, turn.placement, renderSection(injection, this.textOf)),
    );
  }

  /** Digest of the prompt before the part's section. */
  #anchorOf({ turn: { id, given, placement }, injection, standing }: OutlinedTurn, before: Digest): Digest {
    return keptIn(this.#digests, `${before} ${id} ${standing} anchor`, () => {
      const digest = digestAfter(before, given.slice(0, answersIn(given, placement)));
      return isEmptyInjection(injection) ? digest : anchorAfter(digest, placement, hasLabels(injection));
    });
  }

  #segmentsOf(part: OutlinedTurn): readonly Segment[] {
    return keptIn(this.#segments, `${part.turn.id} ${part.standing}`, () => turnSegments(part));
  }
}

/** Number of messages that a turn adds before the one with its section. */
function answersIn(given: readonly Digest[], placement: Turn["placement"]): number {
  return given.length - (placement === "in-question" ? 1 : 0);
}

function headSegments(head: readonly ChatMessage[] | null, digest: Digest): MessageSegment[] {
  const segment = (offset: number, plain: ChatMessage | null, own: Digest): MessageSegment => {
    return { kind: "instructions", turn: null, offset, plain, digest: own, key: `m${own}` };
  };
  // Of erased instructions only the digest is known, not the number of messages: they count as one.
  if (head === null) return [segment(0, null, digest)];
  return head.map((message, at) => segment(at, message, messageDigest(message)));
}

function turnSegments({ turn, given, injection }: OutlinedTurn): Segment[] {
  return withSection(turn, given, (where) => sectionSegments(injection, where, turn.placement));
}

function erasedSegments({ turn, given, standing }: OutlinedTurn, { key, isCertain }: ErasedTurn): Segment[] {
  // Retention may have dropped the section: then it was no message of its own, and later messages must not be counted one too far.
  const mayBeGone = isOwnMessage(turn.placement) && standing === "none" && !isCertain;
  return withSection(turn, given, (where) => [
    { ...where, offset: where.offset - (mayBeGone ? 1 : 0), kind: "erased", key },
  ]);
}

/** A turn's plain messages, with the section in its place. */
function withSection(
  { id, given: digests, placement }: Turn,
  given: SpokenTurn["given"],
  section: (where: Omit<InTurn, "key">) => readonly Segment[],
): Segment[] {
  const plain = digests.map((digest, offset): MessageSegment => {
    return { kind: "message", turn: id, offset, plain: given?.[offset] ?? null, digest, key: `m${digest}` };
  });
  if (isOwnMessage(placement)) return [...plain, ...section({ turn: id, offset: plain.length })];
  if (placement === "in-tool-result") {
    const after = section({ turn: id, offset: plain.length - 1 });
    const isOpen = (at: number) => after.length > 0 && at === plain.length - 1;
    const own = plain.map((segment, at) =>
      isOpen(at) ? { ...segment, isOpen: true, key: `${segment.key}+` } : segment,
    );
    return [...own, ...after];
  }
  return [...plain.slice(0, -1), ...section({ turn: id, offset: plain.length - 1 }), ...plain.slice(-1)];
}

function sectionSegments(
  injection: Injection,
  where: Omit<InTurn, "key">,
  placement: Turn["placement"],
): SectionSegment[] {
  if (isEmptyInjection(injection)) return [];
  return [
    { ...where, kind: "opening", key: placement === "after-tool-result-as-parts" ? "<parts" : "<" },
    ...injection.blocks.map((block): SectionSegment => {
      return { ...where, kind: "block", block, key: blockKey(block) };
    }),
    // Before the tag that they follow: in a prompt without them it ends in other tokens, so it is not shared.
    ...injection.annotations.map((annotation): SectionSegment => {
      return { ...where, kind: "annotation", annotation, key: `a${annotationKey(annotation)}` };
    }),
    { ...where, kind: "closing", placement, key: `>${placement}` },
  ];
}

/** Equal for lines that are the same bytes. */
function blockKey({ label, replaces, isLabelled }: InjectedBlock): string {
  return isLabelled ? `n${label} ${replaces.join()}` : `b${label}`;
}

function annotationKey(annotation: Annotation): string {
  return renderAnnotation(annotation, (label) => String(label));
}

/** Upper bound of the segments of the prompt's outline, and so of what it can share, without building it. */
export function mostSegments({ turns, head }: Pick<StoredPrompt, "turns" | "head">): number {
  let most = head?.length ?? 1;
  for (const { turn } of turns) {
    const { blocks, annotations } = turn.injection;
    most += turn.given.length + blocks.length + annotations.length + 2;
  }
  return most;
}

/** Tokens that a segment adds to its prompt, estimated as in the plan; 0 for erased text. */
export function segmentTokens(segment: Segment, register: BlockRegister, countTokens: TokenCounter): number {
  switch (segment.kind) {
    case "instructions":
    case "message":
      if (segment.plain === null) return 0;
      return tokensBeforeSection([segment.plain], "in-tool-result", segment.isOpen === true, countTokens);
    case "opening":
      return fixedTokens(SECTION_OPENING, countTokens);
    case "block":
      return register.lineTokens(segment.block);
    case "annotation":
      return countTokens(`${renderAnnotation(segment.annotation, register.textOf)}\n`);
    case "closing":
      return closingTokens(segment.placement, countTokens);
    case "erased":
      return 0;
  }
}
