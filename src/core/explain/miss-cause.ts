import type { BlockRegister } from "../blocks/block-register.js";
import { ownTurn, type StoredPrompt } from "../compose/stored-prompt.js";
import type { FixedRetention } from "../conversation/retention.js";
import type { Turn } from "../conversation/turn.js";
import type { InjectedBlock } from "../prompt/injection.js";
import type { Label } from "../text/ids.js";
import type { Outline, Segment } from "./prompt-outline.js";

/** Why a prompt goes on differently from the nearest earlier one. "Here" is the prompt, "there" the earlier one. */
export type MissCause =
  /** No earlier prompt of this scope was there to compare with. */
  | { readonly kind: "first_prompt" }
  /** It begins with the whole earlier prompt, and goes on: the best there can be. */
  | { readonly kind: "appended" }
  /** All of it stands at the beginning of the earlier prompt. */
  | { readonly kind: "repeated" }
  /** The instructions differ: a message of them, or how many there are. */
  | { readonly kind: "other_instructions" }
  /** Only the question differs: everything before it is the same. */
  | { readonly kind: "other_question" }
  /** A plain message of the same conversation differs: it was edited, regenerated or cut. */
  | { readonly kind: "edited_history" }
  /** A plain message differs, and the nearest earlier prompt is of another conversation, or of none. */
  | { readonly kind: "other_history" }
  /** Nothing that turns before it had given stands any more: in this prompt, or in the earlier one only. */
  | { readonly kind: "fresh_start"; readonly where: "here" | "there" }
  /** The retention of an earlier turn took away what it had given. */
  | {
      readonly kind: "not_retained";
      readonly retention: FixedRetention;
      readonly what: "annotations" | "memories";
    }
  /** Something in one of the prompts was forgotten since it was sent; which label it had is not kept. */
  | { readonly kind: "forgotten_memory" }
  /** A memory's text was updated: the new block stands where the old one stood. */
  | { readonly kind: "updated_text"; readonly was: Label; readonly is: Label }
  /** A block that the earlier prompt does not have here; `instead` stood there, and may come later here. */
  | {
      readonly kind: "new_memory";
      readonly label: Label;
      readonly instead: Label | null;
      readonly insteadMoved: boolean;
    }
  /** A block of the earlier prompt was not retrieved this time; `instead` stands here. */
  | { readonly kind: "missing_memory"; readonly label: Label; readonly instead: Label | null }
  /** Both prompts have both blocks, in another order. */
  | { readonly kind: "other_order"; readonly here: Label; readonly there: Label }
  /** The same blocks; a line behind them differs: the ranking, or the reference to earlier ones. */
  | { readonly kind: "other_annotations" };

/** An outlined prompt. */
export interface OutlinedPrompt {
  readonly prompt: Pick<StoredPrompt, "turns">;
  readonly outline: Outline;
}

/** Says why two prompts of one scope differ from segment `at` on, before which they are the same. Pure; reads labels only. */
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

/** Sections stand in messages of users. */
function mayHoldSection(segment: Segment): boolean {
  return segment.kind === "message" && (segment.plain === null || segment.plain.role === "user");
}

function notReplayed(turn: Turn, { turns }: OutlinedPrompt["prompt"], lost: Segment): MissCause {
  const at = turns.findIndex((spoken) => spoken.turn.id === turn.id);
  if (turns.slice(at + 1).some((later) => later.turn.freshStart)) return { kind: "fresh_start", where: "here" };
  const what = lost.kind === "annotation" || turn.injection.blocks.length === 0 ? "annotations" : "memories";
  return { kind: "not_retained", retention: turn.retention, what };
}

/** One side's block at the difference, and all blocks of its section. */
interface SectionSide {
  /** Null: no block stands there, the section has ended or there is none. */
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

/** A label that one block takes the place of and the other does not. */
function onlyInOne(a: readonly Label[], b: readonly Label[]): Label | undefined {
  return a.find((label) => !b.includes(label)) ?? b.find((label) => !a.includes(label));
}
