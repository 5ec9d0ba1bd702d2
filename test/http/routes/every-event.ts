import { readFileSync } from "node:fs";
import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { z } from "zod";

/** A stream with every event that an API documents. */
export interface EveryEvent {
  /** Each with its name and in its documented form, to the documented end. */
  readonly events: readonly StreamedEvent[];
  /** Events that a stream may end with instead. */
  readonly otherEnds: readonly StreamedEvent[];
}

export type StreamedEvent = Readonly<Record<string, unknown>> & { readonly type: string };

type All<T extends string> = Readonly<Record<T, true>>;

/** The events of the Responses API, by the types of OpenAI's client: one that is missing here does not compile. */
export const RESPONSE_EVENTS: All<OpenAI.Responses.ResponseStreamEvent["type"]> = {
  error: true,
  "response.audio.delta": true,
  "response.audio.done": true,
  "response.audio.transcript.delta": true,
  "response.audio.transcript.done": true,
  "response.code_interpreter_call.completed": true,
  "response.code_interpreter_call.in_progress": true,
  "response.code_interpreter_call.interpreting": true,
  "response.code_interpreter_call_code.delta": true,
  "response.code_interpreter_call_code.done": true,
  "response.completed": true,
  "response.content_part.added": true,
  "response.content_part.done": true,
  "response.created": true,
  "response.custom_tool_call_input.delta": true,
  "response.custom_tool_call_input.done": true,
  "response.failed": true,
  "response.file_search_call.completed": true,
  "response.file_search_call.in_progress": true,
  "response.file_search_call.searching": true,
  "response.function_call_arguments.delta": true,
  "response.function_call_arguments.done": true,
  "response.image_generation_call.completed": true,
  "response.image_generation_call.generating": true,
  "response.image_generation_call.in_progress": true,
  "response.image_generation_call.partial_image": true,
  "response.in_progress": true,
  "response.incomplete": true,
  "response.mcp_call.completed": true,
  "response.mcp_call.failed": true,
  "response.mcp_call.in_progress": true,
  "response.mcp_call_arguments.delta": true,
  "response.mcp_call_arguments.done": true,
  "response.mcp_list_tools.completed": true,
  "response.mcp_list_tools.failed": true,
  "response.mcp_list_tools.in_progress": true,
  "response.output_item.added": true,
  "response.output_item.done": true,
  "response.output_text.annotation.added": true,
  "response.output_text.delta": true,
  "response.output_text.done": true,
  "response.queued": true,
  "response.reasoning_summary_part.added": true,
  "response.reasoning_summary_part.done": true,
  "response.reasoning_summary_text.delta": true,
  "response.reasoning_summary_text.done": true,
  "response.reasoning_text.delta": true,
  "response.reasoning_text.done": true,
  "response.refusal.delta": true,
  "response.refusal.done": true,
  "response.web_search_call.completed": true,
  "response.web_search_call.in_progress": true,
  "response.web_search_call.searching": true,
};

/** The events, blocks and deltas of the Messages API, by the types of Anthropic's client. */
export const MESSAGE_EVENTS: All<
  | Anthropic.Beta.BetaRawMessageStreamEvent["type"]
  | Anthropic.Beta.BetaContentBlock["type"]
  | Anthropic.Beta.BetaRawContentBlockDelta["type"]
> = {
  message_start: true,
  message_delta: true,
  message_stop: true,
  content_block_start: true,
  content_block_delta: true,
  content_block_stop: true,
  advisor_tool_result: true,
  bash_code_execution_tool_result: true,
  code_execution_tool_result: true,
  compaction: true,
  container_upload: true,
  fallback: true,
  mcp_tool_listing: true,
  mcp_tool_result: true,
  mcp_tool_use: true,
  redacted_thinking: true,
  server_tool_use: true,
  text: true,
  text_editor_code_execution_tool_result: true,
  thinking: true,
  tool_search_tool_result: true,
  tool_use: true,
  web_fetch_tool_result: true,
  web_search_tool_result: true,
  citations_delta: true,
  compaction_delta: true,
  input_json_delta: true,
  signature_delta: true,
  text_delta: true,
  thinking_delta: true,
};

const event = z.looseObject({ type: z.string() });
const fixture = z.object({ source: z.string(), events: z.array(event), otherEnds: z.array(event) });

/** Reads the events of an API from the fixtures. */
export function everyEvent(api: "responses" | "messages"): EveryEvent {
  const file = new URL(`../../apis/fixtures/${api}-events.json`, import.meta.url);
  return fixture.parse(JSON.parse(readFileSync(file, "utf8")));
}

/** The kinds that a stream has: of its events, and of the blocks and deltas in them. */
export function kindsIn({ events, otherEnds }: EveryEvent): ReadonlySet<string> {
  const kinds = [...events, ...otherEnds].flatMap(({ type, content_block, delta }) => [
    type,
    ...[content_block, delta].map((part) => event.safeParse(part).data?.type),
  ]);
  return new Set(kinds.filter((kind) => kind !== undefined));
}

/**
 * Ways to cut bytes into chunks that have a boundary before every byte between them: chunks of one byte, and of as many as `size` from each
 * of their first bytes on.
 */
export function allCuts(length: number, size = 61): readonly (readonly number[])[] {
  const every = (from: number, step: number) =>
    Array.from({ length: Math.max(0, Math.ceil((length - from) / step)) }, (_, n) => from + n * step);
  return [every(1, 1), ...Array.from({ length: size }, (_, from) => every(from, size))];
}

/** The bytes in chunks that end at these places. */
export async function* chunksAt(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  const ends = [...cuts, bytes.length];
  for (const [at, end] of ends.entries()) yield bytes.subarray(ends[at - 1] ?? 0, end);
}
