import type { BlockRegister } from "../blocks/block-register.js";
import { ownTurn, type StoredPrompt } from "../compose/stored-prompt.js";
import type { EpochReason } from "../conversation/epoch.js";
import type { FixedRetention, Turn } from "../conversation/turn.js";
import type { InjectedBlock } from "../prompt/injection.js";
import type { Label } from "../text/ids.js";
import type { Outline, Segment } from "./prompt-outline.js";

/** Why a prompt differs from the nearest earlier one. "Here" is the prompt, "there" the earlier one. */
export type MissCause =
  /** The scope has no earlier prompt to compare with. */
  | { readonly kind: "first_prompt" }
  /** It extends the whole earlier prompt: the best case. */
  | { readonly kind: "appended" }
  /** It is a prefix of the earlier prompt, or equal. */
  | { readonly kind: "repeated" }
  /** A new epoch of a window's prompts begins with it. */
  | { readonly kind: "new_epoch"; readonly reason: EpochReason }
  /** The instructions differ, in content or number of messages. */
  | { readonly kind: "other_instructions" }
  /** Only the question differs. */
  | { readonly kind: "other_question" }
  /** A plain message of the same conversation differs: it was edited, regenerated or truncated. */
  | { readonly kind: "edited_history" }
  /** A plain message differs; the nearest earlier prompt belongs to another conversation, or to none. */
  | { readonly kind: "other_history" }
  /** One of the prompts started afresh: it contains nothing of what earlier turns injected. */
  | { readonly kind: "fresh_start"; readonly where: "here" | "there" }
  /** The retention of an earlier turn dropped what it had injected. */
  | {
      readonly kind: "not_retained";
      readonly retention: FixedRetention;
      readonly what: "annotations" | "memories";
    }
  /** A memory in one of the prompts was forgotten since it was sent; its label is not stored. */
  | { readonly kind: "forgotten_memory" }
  /** A memory's text was updated: the new block is in the place of the old one. */
  | { readonly kind: "updated_text"; readonly was: Label; readonly is: Label }
  /** A block that the earlier prompt does not have here; there `instead` is in its place, which may come later here. */
  | {
      readonly kind: "new_memory";
      readonly label: Label;
      readonly instead: Label | null;
      readonly insteadMoved: boolean;
    }
  /** A block of the earlier prompt was not retrieved this time; `instead` is in its place. */
  | { readonly kind: "missing_memory"; readonly label: Label; readonly instead: Label | null }
  /** Both prompts have both blocks, in another order. */
  | { readonly kind: "other_order"; readonly here: Label; readonly there: Label }
  /** The same blocks, but an annotation after them differs: the ranking, or the reference to earlier blocks. */
  | { readonly kind: "other_annotations" };

/** An outlined prompt. */
export interface OutlinedPrompt {
  readonly prompt: Pick<StoredPrompt, "turns">;
  readonly outline: Outline;
}

/** The cause of the difference between two prompts of one scope, which are equal before segment `at`. Pure; reads labels only. */
export function missCause(here: OutlinedPrompt, there: OutlinedPrompt, at: number, register: BlockRegister): MissCause {
  const [a, b] = [here.outline.segments[at], there.outline.segments[at]];
  if (a === undefined) return { kind: "repeated" };
  if (b === undefined) return { kind: "appended" };
  if (a.kind === "erased" || b.kind === "erased") return { kind: "forgotten_memory" };
  if (a.kind === "instructions" || b.kind === "instructions") return { kind: "other_instructions" };
  const own = ownTurn(here.prompt);
  const replayed = here.prompt.turns.find(({ turn }) => turn.id === b.turn && turn !== own)?.turn;
  if (replayed !== undefined && isOfSection(b)) return notReplayed(replayed, here.prompt, b);
  const kept = there.prompt.turns.some(({ turn }) => turn.id === a.turn);
  if (kept && isOfSection(a)) return { kind: "fresh_start", where: "there" };
  const sameConversation = own.conversationId !== null && own.conversationId === ownTurn(there.prompt).conversationId;
  const otherHistory: MissCause = { kind: sameConversation ? "edited_history" : "other_history" };
  if (a.turn !== own.id) return otherHistory;
  const isLast = a.kind === "message" && a.offset === own.given.length - 1;
  if (isOfSection(a) ? isOfSection(b) || mayHoldSection(b) : isLast && isOfSection(b)) {
    return memoryCause(sideAt(here, a), sideAt(there, b), register);
  }
  return isLast && !sameConversation ? { kind: "other_question" } : otherHistory;
}

function isOfSection({ kind }: Segment): boolean {
  return kind === "opening" || kind === "block" || kind === "annotation" || kind === "closing";
}

/** Sections are in users' messages. */
function mayHoldSection(segment: Segment): boolean {
  return segment.kind === "message" && (segment.plain === null || segment.plain.role === "user");
}

function notReplayed(turn: Turn, { turns }: OutlinedPrompt["prompt"], lost: Segment): MissCause {
  const at = turns.findIndex((spoken) => spoken.turn.id === turn.id);
  if (turns.slice(at + 1).some((later) => later.turn.freshStart)) return { kind: "fresh_start", where: "here" };
  const what = lost.kind === "annotation" || turn.injection.blocks.length === 0 ? "annotations" : "memories";
  return { kind: "not_retained", retention: turn.retention, what };
}

/** One prompt's block at the difference, and all blocks of its section. */
interface SectionSide {
  /** Null: there is no block, because the section has ended or does not exist. */
  readonly block: InjectedBlock | null;
  readonly all: ReadonlySet<Label>;
}

function sideAt({ outline }: OutlinedPrompt, segment: Segment): SectionSide {
  const blocks = isOfSection(segment)
    ? outline.segments.flatMap((other) => (other.kind === "block" && other.turn === segment.turn ? [other.block] : []))
    : [];
  const first = segment.kind === "opening" ? (blocks[0] ?? null) : null;
  return {
    block: segment.kind === "block" ? segment.block : first,
    all: new Set(blocks.map(({ label }) => label)),
  };
}

function memoryCause(here: SectionSide, there: SectionSide, register: BlockRegister): MissCause {
  if (here.block === null || there.block === null) {
    if (here.block !== null) {
      return { kind: "new_memory", label: here.block.label, instead: null, insteadMoved: false };
    }
    if (there.block !== null) return { kind: "missing_memory", label: there.block.label, instead: null };
    return { kind: "other_annotations" };
  }
  const [is, was] = [here.block.label, there.block.label];
  const replaced = onlyInOne(here.block.replaces, there.block.replaces);
  if (is === was) return { kind: "updated_text", was: replaced ?? was, is };
  const successor = register.successor(was);
  if (successor !== null && here.all.has(successor)) return { kind: "updated_text", was, is: successor };
  if (!there.all.has(is)) return { kind: "new_memory", label: is, instead: was, insteadMoved: here.all.has(was) };
  return here.all.has(was)
    ? { kind: "other_order", here: is, there: was }
    : { kind: "missing_memory", label: was, instead: is };
}

/** A label that only one of the blocks replaces. */
function onlyInOne(a: readonly Label[], b: readonly Label[]): Label | undefined {
  return a.find((label) => !b.includes(label)) ?? b.find((label) => !a.includes(label));
}
