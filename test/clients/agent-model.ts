import { z } from "zod";

/** What a client asks a model for, whatever API it speaks. */
export interface Asked {
  /** What the model reads, in order: the tools, then each message or item. One prompt is a prefix of another if its list is. */
  readonly prompt: readonly string[];
  /** The user's last words, without memories. */
  readonly question: string;
  /** Tool results behind them. */
  readonly results: number;
  /** Names of the tools that it may call. */
  readonly tools: readonly string[];
  /** The tool that it has to call: by name, or any of them. */
  readonly forced: string | "any" | null;
  /** Whether the answer is to be JSON by a schema. */
  readonly asJson: boolean;
  readonly stream: boolean;
}

/** What a model says: a text, or the call of one tool with its arguments as JSON. */
export type Said =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "call"; readonly id: string; readonly name: string; readonly json: string };

const WEATHER = "weather";
const CITIES = ["Lisbon", "Porto", "Faro"];
/** What it answers by a schema. */
export const TRIP = { city: "Lisbon", days: 3 } as const;

/** A question that needs so many calls of {@link WEATHER}, one after the other. */
export function lookUp(cities: number): string {
  return `Look up the weather of ${cities} cities, one by one.`;
}

/** What it says to a question once it has called what it needs. */
export function answerTo(question: string): string {
  return `Noted: ${question}`;
}

/** A model that does as it is told, the same every time. */
export function modelSays(asked: Asked): Said {
  const { question, results, tools, forced, asJson } = asked;
  const call = (name: string, given: object): Said => {
    const id = `call_${asked.prompt.length}_${results}`;
    return { kind: "call", id, name, json: JSON.stringify(given) };
  };
  if (forced !== null && forced !== "any" && forced !== WEATHER) return call(forced, TRIP);
  const wanted = Number(/Look up the weather of (\d+)/.exec(question)?.[1] ?? 0);
  if (tools.includes(WEATHER) && results < wanted) return call(WEATHER, { city: CITIES[results % CITIES.length] });
  // Some clients have the answer given as the arguments of a tool of their own.
  const own = tools.find((name) => name !== WEATHER);
  if (forced === "any" && own !== undefined) return call(own, TRIP);
  return { kind: "text", text: asJson ? JSON.stringify(TRIP) : answerTo(question) };
}

const SECTION =
  /<memories>[\s\S]*?<\/memories>(?:\n(?:Most relevant|Update|Also relevant)[^\n]*(?:\n {2}[^\n]*)*)*\s*/g;

/** One message as {@link lastQuestion} reads it. */
export interface Turn {
  readonly role: "user" | "result" | "other";
  readonly text: string;
}

/** The user's last words and how many results stand behind them; a message of memories alone is nobody's words. */
export function lastQuestion(turns: readonly Turn[]): Pick<Asked, "question" | "results"> {
  const said = turns.map(({ role, text }) => ({ role, text: text.replace(SECTION, "").trim() }));
  const at = said.findLastIndex(({ role, text }) => role === "user" && text !== "");
  const results = said.slice(at + 1).filter(({ role }) => role === "result").length;
  return { question: said[at]?.text ?? "", results };
}

/** Tokens of a prompt: all, and those that the engine had in its cache. */
export interface Counted {
  readonly prompt: number;
  readonly cached: number;
}

const parts = z.array(z.looseObject({ text: z.string().catch("") })).catch([]);

/** The text of a message's content, in whatever form an API has it. */
export function partsText(content: unknown): string {
  if (typeof content === "string") return content;
  return parts
    .parse(content)
    .map(({ text }) => text)
    .join("");
}
