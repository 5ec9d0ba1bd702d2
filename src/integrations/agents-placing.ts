import type { ChatMessage } from "../core/index.js";
import { hasPlace } from "./agents-items.js";
import type { AdapterOptions } from "./composing.js";

/**
 * Options for a prompt that has an item for each that is given: memories go into a tool's result, or, where its item has no place for them,
 * nowhere.
 */
export function placedInResults<Call>(
  options: AdapterOptions<Call>,
  messages: readonly ChatMessage[],
): AdapterOptions<Call> {
  const placed: AdapterOptions<Call> = { ...options, compose: { ...options.compose, toolMemories: "in_result" } };
  return hasPlace(messages.at(-1)) ? placed : { ...placed, memories: () => [] };
}
