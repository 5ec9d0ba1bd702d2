import type { BlockRegister } from "../blocks/block-register.js";
import { ownTurn, type StoredPrompt } from "../compose/plan.js";
import type { Turn } from "../conversation/conversation.js";
import type { InjectedBlock } from "../prompt/section.js";
import type { Label } from "../text/ids.js";
import type { MissCause } from "./explanation.js";
import type { Outline, Segment } from "./prompt-outline.js";

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
