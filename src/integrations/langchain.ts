/*
 * LangChain JS: a middleware for agents made with `createAgent`. `langgraph.ts` needs no `langchain`.
 * Built without `langchain` installed, so exported types are written out. `npm run adapters` checks them.
 */

import { type BaseMessage, SystemMessage } from "@langchain/core/messages";
import type { ClientTool, ServerTool } from "@langchain/core/tools";
import { type AgentMiddleware, createMiddleware, type ModelRequest } from "langchain";
import { z } from "zod";
import { isSameJson } from "../core/text/json.js";
import type { EngineHints } from "../service/base/call-types.js";
import type { AdapterOptions, NameOf, PromptOptions } from "./composing.js";
import { type HintedPrompt, promptOf } from "./langchain-prompt.js";

/** Anything but a name counts as absent: a context that does not fit a schema would fail the agent's call. */
const name = z.union([z.string(), z.number()]).nullish().catch(null);
const contextSchema = z.looseObject({ userId: name, agentId: name, conversationId: name });
/** An agent's `context`. */
export type MemprefixContext = z.input<typeof contextSchema>;

export type ModelCall = ModelRequest<Record<string, unknown>, MemprefixContext>;

export interface LangChainOptions extends Omit<AdapterOptions<ModelCall>, "userId"> {
  /** Default: `userId` of the agent's context. */
  readonly userId?: NameOf<ModelCall>;
  /** Default: `agentId` of the agent's context. */
  readonly agentId?: NameOf<ModelCall>;
  /** Default: `conversationId` of the agent's context, else the thread's id (`configurable.thread_id`). */
  readonly conversationId?: NameOf<ModelCall>;
}

/**
 * A middleware for `createAgent` that composes the prompt of every model call, and reports its usage. It changes only the request: the agent's
 * state and checkpoints have no memories. Put it last, so that it sees what the other middlewares made of the request.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools, middleware: [memprefixMiddleware({ memprefix })], checkpointer });
 * await agent.invoke({ messages }, { context: { userId: "ana" }, configurable: { thread_id: "trip" } });
 * ```
 */
export function memprefixMiddleware(
  options: LangChainOptions,
): AgentMiddleware<
  undefined,
  typeof contextSchema,
  MemprefixContext,
  readonly (ClientTool | ServerTool)[],
  readonly []
> {
  const named: AdapterOptions<ModelCall> = {
    ...options,
    userId: options.userId ?? (({ runtime }) => asName(runtime.context.userId)),
    agentId: options.agentId ?? (({ runtime }) => asName(runtime.context.agentId)),
    conversationId:
      options.conversationId ??
      (({ runtime }) => asName(runtime.context.conversationId ?? runtime.configurable?.thread_id)),
  };
  /** Unanswered prompts by the messages of the agent's state: a retried call is sent the same prompt. */
  const unanswered = new WeakMap<readonly BaseMessage[], AskedPrompt>();
  return createMiddleware({
    name: "memprefix",
    contextSchema,
    wrapModelCall: async (request, handler) => {
      const { state } = request;
      const before = unanswered.get(state.messages);
      const composed = before !== undefined && isAsked(before, request) ? before : await askedPrompt(named, request);
      if (composed === null) return handler(request);
      unanswered.set(state.messages, composed);
      const answer = await handler({ ...request, ...requestWith(request, composed) });
      unanswered.delete(state.messages);
      void composed.report(answer);
      return answer;
    },
  });
}

function asName(given: unknown): string | null {
  return given == null ? null : String(given);
}

interface AskedPrompt extends HintedPrompt {
  readonly request: ModelCall;
}

async function askedPrompt(options: AdapterOptions<ModelCall>, request: ModelCall): Promise<AskedPrompt | null> {
  const { messages, systemMessage } = request;
  const placed = { ...options, compose: { ...termsOf(request), ...options.compose } };
  const composed = await promptOf(placed, request, hasText(systemMessage) ? [systemMessage, ...messages] : messages);
  return composed === null ? null : { ...composed, request };
}

function termsOf({ model }: ModelCall): PromptOptions {
  const { model: name, modelName } = model as { readonly model?: unknown; readonly modelName?: unknown };
  const known = [name, modelName].find((one) => typeof one === "string" && one !== "") as string | undefined;
  return known === undefined ? {} : { model: known };
}

function isAsked({ request }: AskedPrompt, { messages, systemMessage }: ModelCall): boolean {
  const { messages: asked, systemMessage: system } = request;
  return (
    messages.length === asked.length &&
    messages.every((message, at) => message === asked[at]) &&
    // Middlewares around this one may recreate it for every attempt.
    isSameJson(systemMessage.content, system.content)
  );
}

function hasText(message: SystemMessage): boolean {
  return message.text !== "";
}

function requestWith({ systemMessage, model, modelSettings }: ModelCall, { messages, engine }: HintedPrompt) {
  const [first] = messages;
  const hasSystem = hasText(systemMessage) && SystemMessage.isInstance(first);
  return {
    messages: hasSystem ? messages.slice(1) : messages,
    ...(hasSystem && first !== systemMessage ? { systemMessage: first } : {}),
    modelSettings: settingsWith(model, engine, modelSettings),
  };
}

/** ChatOpenAI reads headers from `options`, and for a stream, like other classes, from `headers`. The agent's own settings win. */
function settingsWith(model: ModelCall["model"], engine: EngineHints, own: ModelCall["modelSettings"] = {}) {
  const { options, headers: ownHeaders } = own as {
    readonly options?: { readonly headers?: object };
    readonly headers?: object;
  };
  const key = engine.fields["prompt_cache_key"];
  const isOpenAi =
    key !== undefined || ("_llmType" in model && typeof model._llmType === "function" && model._llmType() === "openai");
  const headers = { ...engine.headers, ...options?.headers, ...ownHeaders };
  return {
    ...(key === undefined ? {} : { promptCacheKey: key }),
    ...own,
    headers,
    ...(isOpenAi ? { options: { ...options, headers } } : {}),
  };
}
