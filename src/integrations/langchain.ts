/*
 * LangChain JS: a middleware for agents made with `createAgent`, and a function for chains and LangGraph nodes.
 */

import type { BaseMessage } from "@langchain/core/messages";
import { SystemMessage } from "@langchain/core/messages";
import { createMiddleware, type ModelRequest } from "langchain";
import { z } from "zod";
import type { ChatMessage } from "../core/index.js";
import type { EngineHints } from "../service/compose/compose-answer.js";
import { type AdapterOptions, composeCall, type NameOf, type ReportedUsage, tellError } from "./composing.js";
import { contentWith, findGiven, isSame } from "./given-messages.js";
import { baseMessageOf, chatMessageOf, withContent } from "./langchain-messages.js";

/** Whose memories, in which conversation, as an agent's `context` names them. */
const contextSchema = z.looseObject({
  userId: z.string().optional(),
  agentId: z.string().optional(),
  conversationId: z.string().optional(),
});
/** What `context` of an agent with the middleware has. */
export type MemstemContext = z.input<typeof contextSchema>;

/** A call of the agent's model. */
export type ModelCall = ModelRequest<Record<string, unknown>, MemstemContext>;

/** Options of {@link memstemMiddleware}. */
export interface LangChainOptions extends Omit<AdapterOptions<ModelCall>, "userId"> {
  /** Default: `userId` of the agent's context. */
  readonly userId?: NameOf<ModelCall>;
  /** Default: `agentId` of the agent's context. */
  readonly agentId?: NameOf<ModelCall>;
  /** Default: `conversationId` of the agent's context, else the thread's id (`configurable.thread_id`). */
  readonly conversationId?: NameOf<ModelCall>;
}

/**
 * A middleware for `createAgent` that composes the prompt of every call of the model, and reports its usage. It changes the request alone:
 * the agent's state, and so its checkpoints, have nothing of it. Put it last, so that it sees what the other middlewares made of the request.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools, middleware: [memstemMiddleware({ memstem })], checkpointer });
 * await agent.invoke({ messages }, { context: { userId: "ana" }, configurable: { thread_id: "trip" } });
 * ```
 */
export function memstemMiddleware(options: LangChainOptions) {
  const named: AdapterOptions<ModelCall> = {
    ...options,
    userId: options.userId ?? (({ runtime }) => runtime.context?.userId),
    agentId: options.agentId ?? (({ runtime }) => runtime.context?.agentId),
    conversationId: options.conversationId ?? conversationOf,
  };
  /** Prompts that no answer came for, by the messages of the agent's state: a call that is repeated is sent the same. */
  const unanswered = new WeakMap<readonly BaseMessage[], AskedPrompt>();
  return createMiddleware({
    name: "memstem",
    contextSchema,
    wrapModelCall: async (request, handler) => {
      const { messages, systemMessage, state } = request;
      const given = systemMessage.text === "" ? messages : [systemMessage, ...messages];
      const before = unanswered.get(state.messages);
      const composed =
        before !== undefined && isAlike(before.given, given) ? before.prompt : await prompt(named, request, given);
      if (composed === null) return handler(request);
      unanswered.set(state.messages, { given, prompt: composed });
      const answer = await handler({ ...request, ...requestWith(request, composed) });
      unanswered.delete(state.messages);
      await composed.report(answer);
      return answer;
    },
  });
}

interface AskedPrompt {
  readonly given: readonly BaseMessage[];
  readonly prompt: HintedPrompt;
}

/** Middlewares around this one may make the system message anew for every attempt. */
function isAlike(a: readonly BaseMessage[], b: readonly BaseMessage[]): boolean {
  return (
    a.length === b.length &&
    a.every((one, at) => one === b[at] || isSame(chatMessageOf(one), chatMessageOf(b[at] as BaseMessage)))
  );
}

function conversationOf({ runtime }: ModelCall): string | undefined {
  const { conversationId } = runtime.context ?? {};
  const thread: unknown = runtime.configurable?.thread_id;
  return conversationId ?? (thread == null ? undefined : String(thread));
}

/** A prompt for a model of LangChain's. */
export interface LangChainPrompt {
  readonly messages: BaseMessage[];
  /** Reports the usage of the model's answer. Never rejects. */
  report(answer: unknown): Promise<void>;
}

/**
 * Composes the messages of a chain or of a LangGraph node, for `model.invoke(messages)`. Where something fails, which `onError` was told, or
 * no user is named, they are the given messages. Never rejects.
 *
 * @example
 * ```ts
 * const { messages, report } = await composeMessages({ memstem, userId, conversationId }, state.messages);
 * const answer = await model.invoke(messages);
 * await report(answer);
 * ```
 */
export async function composeMessages(
  options: AdapterOptions<readonly BaseMessage[]>,
  messages: BaseMessage[],
): Promise<LangChainPrompt> {
  return (await prompt(options, messages, messages)) ?? { messages, report: async () => {} };
}

/** A prompt with what goes along with it. */
interface HintedPrompt extends LangChainPrompt {
  readonly engine: EngineHints;
}

async function prompt<Call>(
  options: AdapterOptions<Call>,
  call: Call,
  given: readonly BaseMessage[],
): Promise<HintedPrompt | null> {
  const asked: ChatMessage[] = [];
  const composed = await composeCall<Call, ChatMessage>(options, call, () => {
    for (const message of given) asked.push(chatMessageOf(message));
    return asked;
  });
  if (composed === null) return null;
  try {
    const messages = findGiven(asked, composed.messages).map(({ message, of, isSame: isGiven }) => {
      const own = of === null ? undefined : given[of];
      if (of === null || own === undefined) return baseMessageOf(message);
      return isGiven ? own : withContent(own, contentWith(message.content, asked[of]?.content));
    });
    const report = (answer: unknown) => composed.report(usageOf(answer));
    return { messages, report, engine: composed.engine };
  } catch (error) {
    tellError(options, error);
    return null;
  }
}

const answered = z.object({
  usage_metadata: z.object({
    input_tokens: z.number(),
    input_token_details: z.object({ cache_read: z.number().optional() }).optional(),
  }),
});
/** An agent that gives a structured answer has the model's among others. */
const answers = z
  .union([
    answered.transform((one) => [one]),
    z.object({ messages: z.array(answered.nullable().catch(null)) }).transform(({ messages }) => messages),
  ])
  .catch([]);

function usageOf(answer: unknown): ReportedUsage {
  const { usage_metadata: usage } = answers.parse(answer).findLast((one) => one !== null) ?? {};
  return { promptTokens: usage?.input_tokens, cachedTokens: usage?.input_token_details?.cache_read };
}

/** The parts of a request that a prompt changes: its messages, and what the engine is to be sent along with them. */
function requestWith({ systemMessage, model, modelSettings }: ModelCall, { messages, engine }: HintedPrompt) {
  const [first] = messages;
  const hasSystem = systemMessage.text !== "" && SystemMessage.isInstance(first);
  return {
    messages: hasSystem ? messages.slice(1) : messages,
    ...(hasSystem && first !== systemMessage ? { systemMessage: first } : {}),
    modelSettings: settingsWith(model, engine, modelSettings),
  };
}

/** The settings that a model's class reads; the agent's own come first. ChatOpenAI has headers in `options`, and where it streams not. */
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
