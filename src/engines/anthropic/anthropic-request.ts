import { type ChatMessage, instructionsAtHead } from "../../core/index.js";
import type { MarksElsewhere } from "../adapters/engine-adapter.js";
import { record } from "../upstream/json-values.js";
import {
  type AnthropicBlock,
  type AnthropicMessage,
  anthropicMessages,
  instructionBlocks,
} from "./anthropic-content.js";

/** The body of an OpenAI chat completion, as far as it is converted. */
export interface ChatBody {
  readonly messages: readonly ChatMessage[];
  readonly [field: string]: unknown;
}

/** The body of a `POST /v1/messages`. */
export interface AnthropicRequest {
  readonly max_tokens: number;
  readonly system?: readonly AnthropicBlock[];
  readonly messages: readonly AnthropicMessage[];
  readonly [field: string]: unknown;
}

/** `/v1/messages` requires `max_tokens`, which OpenAI does not; every model supports this many. */
export const DEFAULT_MAX_TOKENS = 4_096;

/** Fields that are Anthropic's, or the same in both. Others are dropped, as Anthropic rejects unknown ones. */
const SAME_IN_BOTH = [
  ...["model", "stream", "top_p", "top_k", "thinking", "cache_control", "container", "context_management"],
  ...["inference_geo", "output_config", "speed", "mcp_servers", "stop_sequences", "diagnostics"],
] as const;

/**
 * Converts the body of an OpenAI chat completion into one of Anthropic's Messages API. Breakpoints on content parts, of `emit` or the
 * caller, move to the blocks of `system`, messages and tools.
 * Source: https://platform.claude.com/docs/en/api/messages
 */
export function toAnthropicMessages(body: ChatBody): AnthropicRequest {
  const head = instructionsAtHead(body.messages);
  const system = instructionBlocks(body.messages.slice(0, head));
  const same = SAME_IN_BOTH.filter((field) => body[field] != null).map((field) => [field, body[field]] as const);
  return {
    ...Object.fromEntries(same),
    max_tokens: whole(body["max_completion_tokens"]) ?? whole(body["max_tokens"]) ?? DEFAULT_MAX_TOKENS,
    ...(system.length === 0 ? {} : { system }),
    messages: anthropicMessages(body.messages.slice(head)),
    ...sampling(body),
    ...tools(body),
    ...output(body),
  };
}

/** Breakpoints outside of the messages: on tools, and the automatic one. */
export function anthropicMarksElsewhere(body: Readonly<Record<string, unknown>>): MarksElsewhere {
  const tools = list(body["tools"])
    .map(markOf)
    .filter((mark) => mark !== undefined);
  return { tools, automatic: body["cache_control"] ?? null };
}

function sampling({ temperature, stop, user }: ChatBody): Readonly<Record<string, unknown>> {
  const stops = (typeof stop === "string" ? [stop] : list(stop)).filter((text) => typeof text === "string");
  return {
    // OpenAI's scale ends at 2, Anthropic's at 1.
    ...(typeof temperature === "number" ? { temperature: Math.min(1, temperature) } : {}),
    ...(stops.length === 0 ? {} : { stop_sequences: stops }),
    ...(typeof user === "string" ? { metadata: { user_id: user } } : {}),
  };
}

function tools(body: ChatBody): Readonly<Record<string, unknown>> {
  const converted = list(body["tools"]).map(anthropicTool);
  const choice = toolChoice(body["tool_choice"]);
  const oneAtATime = body["parallel_tool_calls"] === false && converted.length > 0;
  const chosen = choice ?? (oneAtATime ? { type: "auto" } : null);
  return {
    ...(converted.length === 0 ? {} : { tools: converted }),
    ...(chosen === null || converted.length === 0
      ? {}
      : {
          tool_choice: oneAtATime && chosen.type !== "none" ? { ...chosen, disable_parallel_tool_use: true } : chosen,
        }),
  };
}

/** Converts a function; other tools pass unmodified as Anthropic's own. */
function anthropicTool(tool: unknown): unknown {
  if (record(tool)["type"] !== "function") return tool;
  const { name, description, parameters, strict } = record(record(tool)["function"]);
  const mark = markOf(tool);
  return {
    name,
    ...(description == null ? {} : { description }),
    input_schema: parameters ?? { type: "object", properties: {} },
    ...(strict === true ? { strict } : {}),
    ...(mark === undefined ? {} : { cache_control: mark }),
  };
}

function toolChoice(choice: unknown): { readonly type: string; readonly name?: unknown } | null {
  if (choice === "auto" || choice === "none") return { type: choice };
  if (choice === "required") return { type: "any" };
  const { name } = record(record(choice)["function"]);
  return name === undefined ? null : { type: "tool", name };
}

const EFFORTS = new Set<unknown>(["low", "medium", "high", "xhigh", "max"]);

/** The answer's JSON schema, and the reasoning effort. */
function output(body: ChatBody): Readonly<Record<string, unknown>> {
  const format = record(body["response_format"]);
  const { schema } = record(format["json_schema"]);
  const effort = body["reasoning_effort"];
  const config = {
    ...record(body["output_config"]),
    ...(format["type"] === "json_schema" && schema !== undefined ? { format: { type: "json_schema", schema } } : {}),
    ...(EFFORTS.has(effort) ? { effort } : {}),
  };
  return Object.keys(config).length === 0 ? {} : { output_config: config };
}

function markOf(tool: unknown): unknown {
  return record(tool)["cache_control"] ?? record(record(tool)["function"])["cache_control"] ?? undefined;
}

function whole(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
