/* Instructions that differ from turn to turn. Enters: two prompts' instructions. Leaves: what changed, line by line. */

import { append } from "../text/collections.js";
import { type ChatMessage, messageText } from "../text/message.js";

/** What replaces parts of the first instructions. Both empty: they hold again as they were. */
export interface InstructionChange {
  readonly lines: readonly string[];
  readonly removed: readonly string[];
}

export const NO_CHANGE: InstructionChange = { lines: [], removed: [] };

export interface ChangedLine {
  /** From 1, in the new text. */
  readonly line: number;
  readonly text: string;
}

/** Share of the text that may change: above it, it is another one. */
const MOST_CHANGED = 0.5;
/** Cells of a comparison: above them, everything between the equal ends counts as changed. */
const MOST_CELLS = 1_000_000;
const MOST_LINE_CHARACTERS = 200;

const LINE_END = /\n/;
/** For texts without lines. */
const SENTENCE_END = /\n|(?<=[.!?])\s+/;

/** Null: the instructions are others, or have other parts than text. */
export function changedInstructions(
  first: readonly ChatMessage[],
  now: readonly ChatMessage[],
): InstructionChange | null {
  if (first.length !== now.length || first.some(({ role }, at) => role !== now[at]?.role)) return null;
  if (![...first, ...now].every(hasOnlyText)) return null;
  const [before, after] = [textOf(first), textOf(now)];
  for (const end of [LINE_END, SENTENCE_END]) {
    const change = changeOf(before.split(end), after.split(end));
    const changed = [...change.lines, ...change.removed].reduce((sum, line) => sum + line.length, 0);
    if (changed <= MOST_CHANGED * after.length) return change;
  }
  return null;
}

/** Null: there is none. */
export function firstChangedLine(before: readonly ChatMessage[], now: readonly ChatMessage[]): ChangedLine | null {
  const [earlier, lines] = [textOf(before).split(LINE_END), textOf(now).split(LINE_END)];
  const at = lines.findIndex((line, place) => line !== earlier[place]);
  if (at < 0) return lines.length < earlier.length ? { line: lines.length + 1, text: "" } : null;
  return { line: at + 1, text: (lines[at] ?? "").slice(0, MOST_LINE_CHARACTERS) };
}

export function isSameChange(one: InstructionChange, other: InstructionChange): boolean {
  return JSON.stringify([one.lines, one.removed]) === JSON.stringify([other.lines, other.removed]);
}

function textOf(messages: readonly ChatMessage[]): string {
  return messages.map(messageText).join("\n");
}

export function hasOnlyText({ content }: ChatMessage): boolean {
  return !Array.isArray(content) || content.every(({ type }) => type === "text");
}

/** Lines that replace as many others stand for them; otherwise both are named. */
function changeOf(before: readonly string[], now: readonly string[]): InstructionChange {
  const lines: string[] = [];
  const removed: string[] = [];
  for (const hunk of hunksOf(before, now)) {
    append(lines, hunk.added);
    if (hunk.added.length !== hunk.removed.length) append(removed, hunk.removed);
  }
  const isText = (line: string) => line.trim() !== "";
  return { lines: lines.filter(isText), removed: removed.filter(isText) };
}

interface Hunk {
  readonly removed: string[];
  readonly added: string[];
}

/** By the longest common subsequence. */
function hunksOf(before: readonly string[], now: readonly string[]): readonly Hunk[] {
  let start = 0;
  while (start < before.length && start < now.length && before[start] === now[start]) start++;
  let end = 0;
  const most = Math.min(before.length, now.length) - start;
  while (end < most && before[before.length - 1 - end] === now[now.length - 1 - end]) end++;
  const a = before.slice(start, before.length - end);
  const b = now.slice(start, now.length - end);
  if (a.length * b.length > MOST_CELLS) return [{ removed: a, added: b }];
  const common = commonLengths(a, b);
  const hunks: Hunk[] = [];
  let open: Hunk = { removed: [], added: [] };
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      hunks.push(open);
      open = { removed: [], added: [] };
      i++;
      j++;
    } else if (j < b.length && (i === a.length || (common[i]?.[j + 1] ?? 0) >= (common[i + 1]?.[j] ?? 0)))
      open.added.push(b[j++] ?? "");
    else open.removed.push(a[i++] ?? "");
  }
  return [...hunks, open];
}

/** For each pair of places, how long a common subsequence the rests have. */
function commonLengths(a: readonly string[], b: readonly string[]): readonly Uint32Array[] {
  const rows = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      const [row, next] = [rows[i] as Uint32Array, rows[i + 1] as Uint32Array];
      row[j] = a[i] === b[j] ? 1 + (next[j + 1] as number) : Math.max(next[j] as number, row[j + 1] as number);
    }
  return rows;
}
