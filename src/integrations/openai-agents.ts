/*
 * memstem/openai-agents: memories in the prompts of agents of the OpenAI Agents SDK (`@openai/agents`). Two ways: a filter of a run's model
 * input, which knows the run's context, or models that compose what they are asked, which nothing is stored of.
 */

import { type AgentsItem, instructionsIn, itemsOf, messagesOf, placedInResults } from "./agents-items.js";
import { type AgentsAgent, RunUsage } from "./agents-usage.js";
import { type AdapterOptions, composeCall, tellError } from "./composing.js";

export type { AgentsItem } from "./agents-items.js";
export {
  type AgentsModel,
  type AgentsModelCall,
  type AgentsModelProvider,
  memstemModel,
  memstemModels,
} from "./agents-model.js";
export type { AgentsAgent, AgentsRun, AgentsUsage } from "./agents-usage.js";
export type { AdapterOptions, Composing, NameOf, PromptOptions } from "./composing.js";

/** One call of a model, as a filter sees it. */
export interface FilterCall<Context = unknown> {
  /** The run's own: what was given to `run` as `context`. */
  readonly context: Context | undefined;
  readonly agent: AgentsAgent;
}

/** A `CallModelInputFilter` of the SDK, which leaves open what a run's context is. */
export type AgentsFilter = <Item extends AgentsItem>(
  call: FilterCall & { readonly modelData: { input: Item[]; instructions?: string } },
) => Promise<{ input: Item[]; instructions?: string }>;

/**
 * A `callModelInputFilter` that puts memories into a run's prompts. A session stores what a filter gives for a run's input, so it stores the
 * user's words with the memories in front of them; `compose` knows them when they come back. After a tool's result, memories stand inside
 * the result, which is stored without. Usage is reported by the agent's own events. Never throws.
 *
 * @example
 * ```ts
 * const callModelInputFilter = memstemFilter<{ userId: string; chatId: string }>({
 *   memstem,
 *   userId: ({ context }) => context?.userId,
 *   conversationId: ({ context }) => context?.chatId,
 * });
 * await run(agent, question, { context: { userId, chatId }, session, callModelInputFilter });
 * ```
 */
export function memstemFilter<Context = unknown>(options: AdapterOptions<FilterCall<Context>>): AgentsFilter {
  // What a filter adds of its own, the session would store as if the user had said it.
  const exact = { ...options, compose: { ...options.compose, history: "exact" } as const };
  const usage = new RunUsage();
  return async ({ modelData, agent, context }) => {
    const { input, instructions } = modelData;
    const messages = messagesOf(input, instructions);
    const call = { agent, context: context as Context | undefined };
    const composed = await composeCall(placedInResults<FilterCall<Context>>(exact, messages), call, messages, "chat");
    if (composed === null) return modelData;
    try {
      const filled = itemsOf(composed.messages, input);
      if (filled.length !== input.length) throw new Error("memories have no place in this input");
      usage.await(agent, context, composed.report);
      const head = instructionsIn(composed.messages);
      return { ...modelData, input: fill(input, filled), ...(head === undefined ? {} : { instructions: head }) };
    } catch (error) {
      tellError(options, error);
      return modelData;
    }
  };
}

/** The SDK gives a filter copies, and knows by the copy which item of the run it is: they are changed in place. */
function fill<Item extends AgentsItem>(input: readonly Item[], filled: readonly AgentsItem[]): Item[] {
  return input.map((item, at) => Object.assign(item, filled[at]));
}
