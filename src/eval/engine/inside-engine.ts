import { keptIn } from "../../core/text/collections.js";
import type { ChatModel } from "../../engines/embedded/generation.js";
import { promptTokensWithin } from "../../engines/upstream/model-limits.js";
import type { EngineIdentity, EvalArm } from "../base/run-record.js";
import type { ArmCache, MeasuredEngine } from "./measured-engine.js";

/** An engine in this process that can be closed. */
export interface OpenModel extends ChatModel {
  readonly contextTokens: number;
  close(): Promise<void>;
}

export interface InsideEngineOptions {
  /** Opens an engine for an arm: its slots are the arm's alone. */
  readonly open: (arm: EvalArm) => Promise<OpenModel>;
  readonly maxTokens: number;
  /** What names the model's weights. */
  readonly identify: (signal: AbortSignal) => Promise<EngineIdentity>;
  /** Whether the model's text is noise, as random weights make it. */
  readonly isNoise: boolean;
}

/** The engine inside, one for every arm: arms that share slots would evict each other's prompts. */
export function insideEngine({ open, maxTokens, identify, isNoise }: InsideEngineOptions): MeasuredEngine {
  const opened = new Map<string, Promise<OpenModel>>();
  return {
    kind: "embedded",
    losesCache: true,
    family: "vllm",
    check: identify,
    open: async (arm, conversation): Promise<ArmCache> => {
      const engine = await keptIn(opened, arm.id, () => open(arm));
      return {
        mark: null,
        chooseDepth: null,
        promptTokens: promptTokensWithin({ contextTokens: engine.contextTokens, promptTokens: null }, maxTokens),
        ask: async ({ messages }, _after, signal) => {
          let text = "";
          const startedAt = performance.now();
          for await (const event of engine.generate({ messages, maxTokens, cacheSalt: conversation, signal })) {
            if (event.kind === "text") {
              text += event.text;
              continue;
            }
            const { promptTokens, cachedTokens, completionTokens, ttftMs } = event.usage;
            const answer = isNoise ? null : text.trim();
            const totalMs = performance.now() - startedAt;
            return { promptTokens, cachedTokens, answerTokens: completionTokens, ttftMs, totalMs, answer };
          }
          throw new Error("the engine's answer has no end");
        },
        repeat: () => {},
      };
    },
    close: async () => {
      for (const engine of opened.values()) await (await engine).close();
    },
  };
}
