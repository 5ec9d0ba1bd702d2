import type { ChatMessage, MemoryId, RetrievedMemory } from "../../core/index.js";
import type { FactCase } from "./fact-cases.js";

/** Composes the next prompt of a conversation that no other case has. */
export type ComposeTurn = (
  turn: { readonly messages: readonly ChatMessage[]; readonly memories: readonly RetrievedMemory[] },
  annotations: boolean,
) => Promise<readonly ChatMessage[]>;

export interface FactPrompt {
  readonly name: string;
  readonly messages: readonly ChatMessage[];
}

/** An origin that the composing service distrusts. */
export const UNTRUSTED = "web";
/** What a line after the closing tag said of a text that was replaced, until it was measured. */
const OUTDATED = "No longer true: ";
const BEST = "Most relevant: ";

/** Prompts of two turns: the first has the old text, the second the new one. The first prompt is the one without a line. */
export async function updatePrompts(fact: FactCase, open: () => ComposeTurn): Promise<readonly FactPrompt[]> {
  const { others, question } = fact;
  const [early, late] = [others.slice(0, -1), others.slice(-1)];
  const first = withOneNearTheEnd(early, fact.old);
  const both = (name: string, earlier: readonly string[], newer: readonly string[], line?: string): FactPrompt => ({
    name,
    messages: [...opening(fact, section(earlier)), user(`${section(newer, line)}\n\n${question}`)],
  });
  const old = { id: "fact" as MemoryId, text: fact.old };
  const composed = await composedTurns(open(), fact, first.map(asMemory(old)), [
    { ...old, text: fact.new },
    ...late.map(asMemory(old)),
  ]);
  return [
    both("no line", first, [fact.new, ...late]),
    both("`No longer true: <old>`", first, [fact.new, ...late], OUTDATED + fact.old),
    both("`Most relevant: <old>`", first, [fact.new, ...late], BEST + fact.old),
    both("`Update: <new>`, also in the list", first, [fact.new, ...late], `Update: ${fact.new}`),
    { name: "as memprefix sends it", messages: composed },
    both("no old text", early, [fact.new, ...late]),
  ];
}

/** Two memories state the new value, one the old one, which is false here. */
export async function falsePrompts(fact: FactCase, open: () => ComposeTurn): Promise<readonly FactPrompt[]> {
  const { others, question } = fact;
  const [before, after] = [others.slice(0, -2), others.slice(-2)];
  const one = (name: string, claims: readonly string[], line?: string): FactPrompt => ({
    name,
    messages: [user(`${section([...before, fact.true[0], ...claims, fact.true[1], ...after], line)}\n\n${question}`)],
  });
  const claim = { id: "claim" as MemoryId, text: fact.false };
  const kept = withOneNearTheEnd(before, fact.false);
  const newer = [fact.true[0], ...after, fact.true[1]];
  const turns = (memory: RetrievedMemory, annotations: boolean) =>
    composedTurns(open(), fact, kept.map(asMemory(memory)), [memory, ...newer.map(asMemory(memory))], annotations);
  return [
    one("once", [fact.false]),
    one("repeated by the line", [fact.false], BEST + fact.false),
    one("twice", [fact.false, fact.false]),
    one("marked (unverified)", [`${fact.false} (unverified)`]),
    {
      name: "never",
      messages: [...opening(fact, section(before)), user(`${section(newer)}\n\n${question}`)],
    },
    { name: "kept", messages: await turns(claim, false) },
    { name: "kept, and repeated by the line", messages: await turns(claim, true) },
    { name: "kept, of an untrusted origin", messages: await turns({ ...claim, origin: UNTRUSTED }, true) },
  ];
}

function section(texts: readonly string[], line?: string): string {
  return `<memories>\n${texts.map((text) => `- ${text}\n`).join("")}</memories>${line === undefined ? "" : `\n${line}`}`;
}

/** The first question, with a section, and its answer. */
function opening(fact: FactCase, injected: string | null): readonly ChatMessage[] {
  const question = `What could I talk about with ${fact.person}?`;
  return [
    user(injected === null ? question : `${injected}\n\n${question}`),
    { role: "assistant", content: `You could talk about this: ${fact.others[0]}` },
  ];
}

async function composedTurns(
  compose: ComposeTurn,
  fact: FactCase,
  first: readonly RetrievedMemory[],
  second: readonly RetrievedMemory[],
  annotations = true,
): Promise<readonly ChatMessage[]> {
  const said = opening(fact, null);
  await compose({ messages: said.slice(0, 1), memories: first }, annotations);
  return await compose({ messages: [...said, user(fact.question)], memories: second }, annotations);
}

/** The given memory for its own text, else one whose id is the text. */
function asMemory(known: RetrievedMemory): (text: string) => RetrievedMemory {
  return (text) => (text === known.text ? known : { id: text as MemoryId, text });
}

function withOneNearTheEnd(texts: readonly string[], one: string): readonly string[] {
  return [...texts.slice(0, -1), one, ...texts.slice(-1)];
}

function user(content: string): ChatMessage {
  return { role: "user", content };
}
