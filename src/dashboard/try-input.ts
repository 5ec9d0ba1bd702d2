/* Parses the try-it page's input into memories and questions. */

/** As `POST /compose` takes it. */
export interface TryMemory {
  readonly id: string;
  readonly memory: string;
}

export interface ChatLine {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** One question of a history, with the messages before it. */
export interface TryQuestion {
  readonly messages: readonly ChatLine[];
  readonly query: string;
}

export interface TryInput {
  readonly memories: readonly TryMemory[];
  readonly system: string;
  readonly questions: readonly TryQuestion[];
}

/** The error of the input, for its reader. */
export class InputError extends Error {
  override readonly name = "InputError";
}

/** Keeps a run small, because the service also serves others. */
const MOST_QUESTIONS = 12;
const MOST_MEMORIES = 200;

/** Reads memories and a history, one per line. Throws {@link InputError}. */
export function readTryInput(memories: string, history: string): TryInput {
  const given = memoriesIn(memories);
  if (given.length === 0) throw new InputError("Give at least one memory.");
  if (given.length > MOST_MEMORIES) throw new InputError(`Give at most ${MOST_MEMORIES} memories.`);
  const lines = messagesIn(history);
  const said = lines.filter(({ role }) => role !== "system");
  const questions = said.flatMap(({ role, content }, at) =>
    role === "user" ? [{ messages: said.slice(0, at + 1), query: content }] : [],
  );
  if (questions.length === 0) throw new InputError("Give at least one line that begins with “user:”.");
  if (questions.length > MOST_QUESTIONS) throw new InputError(`Give at most ${MOST_QUESTIONS} questions.`);
  const system = lines.filter(({ role }) => role === "system").map(({ content }) => content);
  return { memories: given, system: system.join("\n"), questions };
}

function memoriesIn(text: string): TryMemory[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((memory, at) => ({ id: `m${at + 1}`, memory }));
}

/** A message continues until a line names a role. */
function messagesIn(text: string): ChatLine[] {
  const found: ChatLine[] = [];
  for (const line of text.split("\n")) {
    const [, role, content = ""] = /^\s*(system|user|assistant)\s*:\s*(.*)$/i.exec(line) ?? [];
    const last = found.at(-1);
    if (role !== undefined) found.push({ role: role.toLowerCase() as ChatLine["role"], content });
    else if (last !== undefined) found[found.length - 1] = { ...last, content: `${last.content}\n${line}` };
    else if (line.trim() !== "") found.push({ role: "user", content: line });
  }
  return found.map(({ role, content }) => ({ role, content: content.trim() })).filter(({ content }) => content !== "");
}

/** The memories that share most words with a question, rare words counting more, best first. A stand-in for a search. */
export function searched(memories: readonly TryMemory[], query: string, k: number): TryMemory[] {
  const words = memories.map(({ memory }) => wordsOf(memory));
  const weight = (word: string) => Math.log(1 + memories.length / (1 + words.filter((of) => of.has(word)).length));
  const asked = [...wordsOf(query)];
  const scores = words.map((of) => asked.reduce((sum, word) => sum + (of.has(word) ? weight(word) : 0), 0));
  return memories
    .map((memory, at) => ({ memory, score: scores[at] ?? 0, at }))
    .toSorted((a, b) => b.score - a.score || a.at - b.at)
    .slice(0, k)
    .map(({ memory }) => memory);
}

function wordsOf(text: string): ReadonlySet<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [];
  return new Set(words.map((word) => (word.length > 4 ? word.replace(/(?:ing|ed|es|s)$/, "") : word)));
}
