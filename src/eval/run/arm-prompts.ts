import type { HistoryName } from "../../core/conversation/epoch.js";
import {
  type ChatMessage,
  type ConversationId,
  DEFAULT_DEPTH,
  type Depth,
  type DepthSettings,
  type PolicyName,
  type RequestId,
  type UserId,
} from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import type { ComposeAnswer } from "../../service/base/call-types.js";
import { type ComposeRequest, composeRequest } from "../../service/compose/compose-request.js";
import { storeAtDepth } from "../../service/compose/prompt-composer.js";
import type { ChosenDepth, DraftAt } from "../../service/compose/prompt-planner.js";
import type { Memprefix } from "../../service/library/memprefix.js";
import { INSTRUCTION, inLastMessage, PAUSE_MS, readmeMessages } from "../base/hand-built.js";
import { type MemoryList, PromptMemories, type StandingMemories } from "../base/prompt-memories.js";
import type { AnsweredQuestion, ArmDepth, EvalArm, RecordedDepth } from "../base/run-record.js";
import type { ChooseDepth, EngineAnswer, EnginePrompt } from "../engine/measured-engine.js";

export interface PromptRequest {
  /** Questions asked before; sets the composers' clock. */
  readonly turn: number;
  readonly question: string;
  /** Earlier messages that the client sends. */
  readonly history: readonly ChatMessage[];
  /** Memory numbers, best first. */
  readonly retrieved: readonly number[];
  readonly evidence: readonly string[];
  /** Recorded adaptive depth, used in place of the engine's. */
  readonly knownDepth?: RecordedDepth | null;
}

/** A prompt, and what is known before an engine gets it. */
export interface ArmPrompt extends EnginePrompt, StandingMemories {
  /** Excludes the tries of adaptive depth. */
  readonly composeMs: number;
  /** memprefix's expectation, by its own token count; null where prompts are not memprefix's. */
  readonly expected: { readonly cachedTokens: number; readonly totalTokens: number } | null;
  readonly figures: Pick<
    AnsweredQuestion,
    | ("retrievedTokens" | "memoryTokens" | "memoriesCut" | "messagesCut" | "isFreshStart" | "depth")
    | ("evidence" | "evidenceInPrompt")
  >;
  /** Reports the engine's usage to the builder, as in production. */
  learn(answer: Pick<EngineAnswer, "promptTokens" | "cachedTokens" | "ttftMs">): Promise<void>;
}

/** Builds the prompts of one arm in one conversation, one after the other. */
export interface PromptBuilder {
  /** The signal ends tries of adaptive depth, not composing. */
  build(request: PromptRequest, signal?: AbortSignal): Promise<ArmPrompt>;
  close(): Promise<void>;
}

const BY_HAND = { readme: readmeMessages, "last-message": inLastMessage } as const;

/** Without memprefix. `mark`: the prompt's first line, null for none. */
export function handBuiltPrompts(list: MemoryList, policy: keyof typeof BY_HAND, mark: string | null): PromptBuilder {
  return {
    build: async ({ question, history, retrieved, evidence }) => {
      const memories = list.retrieved(retrieved);
      const startedAt = performance.now();
      const messages = BY_HAND[policy](memories, [...history, { role: "user", content: question }]);
      const composeMs = performance.now() - startedAt;
      return {
        messages: mark === null ? messages : marked(messages, mark),
        fields: {},
        headers: {},
        order: retrieved,
        carried: [],
        composeMs,
        expected: null,
        figures: {
          retrievedTokens: list.tokens(retrieved),
          memoryTokens: list.tokens(retrieved),
          memoriesCut: 0,
          messagesCut: 0,
          isFreshStart: false,
          depth: null,
          evidence: evidence.length,
          evidenceInPrompt: list.evidenceIn(retrieved, evidence),
        },
        learn: async () => {},
      };
    },
    close: async () => {},
  };
}

export interface ComposedPromptsOptions {
  /** Opens a memprefix without users, on this clock; closed with the builder. */
  readonly openMemprefix: (now: () => number) => Memprefix;
  readonly arm: Pick<EvalArm, "layout" | "retention" | "window" | "annotations" | "depth">;
  readonly policy: PolicyName;
  /** Most memory tokens over all prompts so far, as a multiple of those retrieved; null: no bound. */
  readonly budgetRatio: number | null;
  /** What memprefix makes of a window. Default: the service's. */
  readonly history?: HistoryName;
  readonly family: EngineName;
  readonly mark: string | null;
  /** Most tokens of a prompt; null: no known limit. */
  readonly promptTokens: number | null;
  /** Null: prompts have all memories. */
  readonly chooseDepth: ChooseDepth | null;
}

/** An evaluation waits for a try as long as for an answer. */
const PROBES_MS = 600_000;

/** A growth of 1.01 is one memory more up to 50. */
const ONE_BY_ONE = { growth: 1.01, maxProbes: 50 };

function depthSettings({ isOneByOne, ...depth }: ArmDepth): DepthSettings {
  return { ...DEFAULT_DEPTH, ...(isOneByOne && ONE_BY_ONE), ...depth, timeLimitMs: PROBES_MS };
}

const NEVER = new AbortController().signal;
const USER = "evaluation" as UserId;
const CONVERSATION = "questions" as ConversationId;

export function composedPrompts(list: MemoryList, options: ComposedPromptsOptions): PromptBuilder {
  const { openMemprefix, arm, policy, budgetRatio, history: made, family, mark, promptTokens, chooseDepth } = options;
  let now = 0;
  const memprefix = openMemprefix(() => now);
  const standing = new PromptMemories(list, arm.window !== null);
  const system = mark === null ? INSTRUCTION : `${mark}\n${INSTRUCTION}`;
  return {
    build: async ({ turn, question, history, retrieved, evidence, knownDepth }, signal = NEVER) => {
      now = turn * PAUSE_MS;
      const retrievedTokens = list.tokens(retrieved);
      const given = composeRequest({
        userId: USER,
        conversationId: arm.layout === "conversation" ? CONVERSATION : null,
        messages: [...history, { role: "user", content: question }],
        memories: list.retrieved(retrieved),
        system,
        policy,
        engine: family,
        ...(arm.retention === null ? {} : { retention: arm.retention }),
        ...(made === undefined ? {} : { history: made }),
        ...(arm.annotations === null ? {} : { annotations: arm.annotations === "paper" ? "paper" : false }),
        memoryBudgetRatio: budgetRatio,
      });
      const startedAt = performance.now();
      // As the service composes for an engine with a known limit.
      const destination = { model: "", promptTokens, besideTokens: 0 };
      const request = { ...given, destination };
      const adaptive = arm.depth;
      const { answer, probeMs } =
        adaptive === null || chooseDepth === null
          ? { answer: await memprefix.compose(request), probeMs: 0 }
          : await composedAtDepth(memprefix, request, (draftAt) =>
              knownDepth == null
                ? chooseDepth(memprefix, depthSettings(adaptive), draftAt, signal)
                : repeatedDepth(knownDepth, draftAt),
            );
      const composeMs = performance.now() - startedAt - probeMs;
      const { messages } = answer;
      const { order, carried } = standing.take(answer.blocks, answer.plan, messages);
      const { expectedCachedTokens: cachedTokens, totalTokens, freshStart, epoch, depth = null } = answer.plan;
      return {
        messages,
        fields: answer.engine.fields,
        headers: answer.engine.headers,
        order,
        carried,
        composeMs,
        expected: { cachedTokens, totalTokens },
        figures: {
          retrievedTokens,
          memoryTokens: list.tokens(order),
          memoriesCut: answer.warnings.find(({ code }) => code === "memory_left_out")?.memoryIds?.length ?? 0,
          messagesCut: epoch?.leftOut ?? 0,
          isFreshStart: freshStart || (epoch !== undefined && epoch.began !== null),
          depth: depth && { outcome: depth.outcome, given: depth.given, probeMs, probes: [...depth.probes] },
          evidence: evidence.length,
          evidenceInPrompt: list.evidenceIn(order, evidence),
        },
        learn: (reported) => report(memprefix, answer.requestId, reported),
      };
    },
    close: () => memprefix.close(),
  };
}

async function composedAtDepth(
  memprefix: Memprefix,
  request: ComposeRequest,
  choose: (draftAt: DraftAt) => Promise<ChosenDepth>,
): Promise<{ readonly answer: ComposeAnswer; readonly probeMs: number }> {
  let probeMs = 0;
  const drive = storeAtDepth(async (draftAt) => {
    const startedAt = performance.now();
    const chosen = await choose(draftAt);
    probeMs = performance.now() - startedAt;
    return chosen;
  });
  const answer = await memprefix.chats.composer.compose({ request }, drive);
  return { answer, probeMs };
}

/** The recorded choice, with its tries in their order. */
async function repeatedDepth({ outcome, probes }: RecordedDepth, draftAt: DraftAt): Promise<ChosenDepth> {
  const whole = await draftAt(null);
  let after: Depth["after"] = null;
  for (const { blocks } of probes)
    after = (await draftAt({ blocks, after, choice: { outcome: "unsure", probes: [] } })).ordering;
  const blocks = (outcome === "sure" ? probes.at(-1)?.blocks : undefined) ?? whole.blocks;
  return { blocks, after, choice: { outcome, probes }, warnings: [] };
}

async function report(
  memprefix: Memprefix,
  id: RequestId,
  { promptTokens, cachedTokens, ttftMs }: Pick<EngineAnswer, "promptTokens" | "cachedTokens" | "ttftMs">,
): Promise<void> {
  const said = {
    ...(promptTokens === null ? {} : { promptTokens }),
    ...(cachedTokens === null ? {} : { cachedTokens }),
    ...(ttftMs === null ? {} : { ttftMs }),
  };
  if (Object.keys(said).length > 0) await memprefix.feedback(USER, null, id, said);
}

function marked([system, ...others]: readonly ChatMessage[], mark: string): ChatMessage[] {
  if (system === undefined) return [];
  return [{ ...system, content: `${mark}\n${String(system.content)}` }, ...others];
}
