import { z } from "zod";
import { outputMessage, responseObject, usageOf } from "../http/routes/responses-engine.js";
import { type Asked, type Counted, lastQuestion, partsText, type Said, type Turn } from "./agent-model.js";

const named = z.looseObject({ type: z.string(), name: z.string().optional() });
const body = z.looseObject({
  input: z.union([z.string(), z.array(z.looseObject({}))]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  store: z.boolean().nullish(),
  tools: z.array(named).nullish(),
  tool_choice: z.union([z.string(), named]).nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  stream: z.boolean().nullish(),
});

type Item = Readonly<Record<string, unknown>>;

/** A Responses request as it is read. */
export interface ResponsesRequest {
  readonly asked: Asked;
  /** All items up to here: what a response that the engine keeps is continued from. */
  readonly items: readonly Item[];
  readonly isStored: boolean;
}

/** What an engine that keeps responses has: the items before a response's next input, and single items, by their ids. */
export interface KeptItems {
  readonly responses: ReadonlyMap<string, readonly Item[]>;
  readonly items: ReadonlyMap<string, Item>;
}

/** Reads a Responses request. Throws where it is none, or names what is not kept. */
export function readResponsesRequest(given: unknown, kept: KeptItems): ResponsesRequest {
  const request = body.parse(given);
  const { input, instructions, previous_response_id: previous, tools, tool_choice: choice, text, stream } = request;
  const before = previous == null ? [] : kept.responses.get(previous);
  if (before === undefined) throw new Error(`no response ${previous}`);
  const own: readonly Item[] = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const items = [...before, ...own.map((item) => resolved(item, kept))];
  const read = items.map(itemRead);
  const system = instructions == null ? [] : [JSON.stringify(["instructions", instructions])];
  return {
    items,
    isStored: request.store !== false,
    asked: {
      prompt: [JSON.stringify(tools ?? []), ...system, ...read.map(({ shown }) => shown)],
      ...lastQuestion(read),
      tools: (tools ?? []).flatMap(({ type, name }) => (type === "function" && name !== undefined ? [name] : [])),
      forced:
        typeof choice === "object" && choice !== null ? (choice.name ?? null) : choice === "required" ? "any" : null,
      asJson: text?.format?.type === "json_schema" || text?.format?.type === "json_object",
      stream: stream === true,
    },
  };
}

function resolved(item: Item, kept: KeptItems): Item {
  if (item["type"] !== "item_reference") return item;
  const found = kept.items.get(String(item["id"]));
  if (found === undefined) throw new Error(`no item ${String(item["id"])}`);
  return found;
}

/** An item as the model reads it: without ids and statuses, a text as a part. */
function itemRead(item: Item): Turn & { readonly shown: string } {
  const { type = "message", role, content, call_id, output, name, arguments: given, summary } = item;
  switch (type) {
    case "message": {
      const parts = typeof content === "string" ? [{ text: content }] : (content as readonly Item[]);
      const texts = parts.map((part) => part["text"] ?? part);
      const shown = JSON.stringify([role, ...texts]);
      return { role: role === "user" ? "user" : "other", text: partsText(content), shown };
    }
    case "function_call":
      return { role: "other", text: "", shown: JSON.stringify([type, call_id, name, given]) };
    case "function_call_output":
      return { role: "result", text: partsText(output), shown: JSON.stringify([type, call_id, partsText(output)]) };
    case "reasoning":
      return { role: "other", text: "", shown: JSON.stringify([type, summary]) };
    default:
      return { role: "other", text: "", shown: JSON.stringify(item) };
  }
}

/** The output of a response: behind some reasoning, a message or a call. */
export function responseOutput(said: Said, turn: number): readonly Item[] {
  const reasoning = { id: `rs_${turn}`, type: "reasoning", summary: [], encrypted_content: `gAAAA${turn}` };
  if (said.kind === "text") return [reasoning, outputMessage(`msg_${turn}`, said.text)];
  const { id: call_id, name, json } = said;
  const call = { id: `fc_${turn}`, type: "function_call", status: "completed", call_id, name, arguments: json };
  return [reasoning, call];
}

export function responseAnswer(turn: number, output: readonly Item[], counted: Counted, store: boolean): object {
  return responseObject(`resp_${turn}`, output, usageOf(counted.prompt, counted.cached), { store });
}

/** The events of a response with this output, numbered. */
export function responseStream(response: object, output: readonly Item[]): readonly object[] {
  const [reasoning = {}, last = {}] = output;
  const begun = { ...response, status: "in_progress", output: [], usage: null };
  const added = (item: Item, at: number) => ({ type: "response.output_item.added", output_index: at, item });
  const done = (item: Item, at: number) => ({ type: "response.output_item.done", output_index: at, item });
  const own = last["type"] === "function_call" ? callEvents(last) : messageEvents(last);
  const empty = last["type"] === "function_call" ? { arguments: "" } : { content: [] };
  const events: readonly Item[] = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    added(reasoning, 0),
    done(reasoning, 0),
    added({ ...last, ...empty, status: "in_progress" }, 1),
    ...own,
    done(last, 1),
    { type: "response.completed", response },
  ];
  return events.map((event, sequence_number) => ({ ...event, sequence_number }));
}

function callEvents(item: Item): readonly Item[] {
  const json = String(item["arguments"]);
  const half = Math.ceil(json.length / 2);
  const at = { item_id: item["id"], output_index: 1 };
  return [
    { type: "response.function_call_arguments.delta", ...at, delta: json.slice(0, half) },
    { type: "response.function_call_arguments.delta", ...at, delta: json.slice(half) },
    { type: "response.function_call_arguments.done", ...at, name: item["name"], arguments: json },
  ];
}

function messageEvents(item: Item): readonly Item[] {
  const [part = {}] = item["content"] as readonly Item[];
  const text = String(part["text"]);
  const at = { item_id: item["id"], output_index: 1, content_index: 0 };
  const words = text.match(/\s*\S+/g) ?? [];
  return [
    { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
    ...words.map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
    { type: "response.output_text.done", ...at, text, logprobs: [] },
    { type: "response.content_part.done", ...at, part },
  ];
}
