import { type BaseMessage, HumanMessage, trimMessages } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent, createMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { memprefixMiddleware } from "../../../src/integrations/langchain.js";
import { lookUp } from "../../clients/agent-model.js";
import { brokenPrefixes } from "../../clients/checked-prompts.js";
import { INSTRUCTIONS } from "../../clients/client-program.js";
import { agentTrial, weather } from "./agent-trial.js";

/** The last messages, as LangChain's documents trim them; the agent's state keeps all. */
const trimming = createMiddleware({
  name: "trimming",
  wrapModelCall: async (request, handler) => {
    const options = {
      strategy: "last",
      maxTokens: 5,
      tokenCounter: (messages: BaseMessage[]) => messages.length,
    } as const;
    return handler({ ...request, messages: await trimMessages(request.messages, { ...options, startOn: "human" }) });
  },
});

const CALL = { context: { userId: "ana" }, configurable: { thread_id: "trip" } };
const TURNS = [lookUp(1), "Where should we eat tonight?", lookUp(1), "And now?", "And after that?"];

describe.each(["gpt-5-mini", "gpt-5.2-pro"])("a window, with %s", (name) => {
  const trial = agentTrial();

  it("has in front what it cut, in messages of the same bytes, and a checkpointer's state is the agent's own", async () => {
    const added: number[] = [];
    const lengths: number[] = [];
    const stable: number[] = [];
    const agent = createAgent({
      model: trial.model(name),
      tools: [weather],
      systemPrompt: INSTRUCTIONS,
      checkpointer: new MemorySaver(),
      middleware: [
        trimming,
        memprefixMiddleware({
          memprefix: trial.memprefix,
          ...trial.options,
          compose: { history: "extended", historyRatio: 100 },
          onComposed: ({ plan, messages }) => {
            added.push(plan.addedMessages ?? 0);
            stable.push(plan.stableMessages);
            lengths.push(messages.length);
          },
        }),
      ],
    });
    for (const question of TURNS) await agent.invoke({ messages: [new HumanMessage(question)] }, CALL);
    expect(trial.errors).toEqual([]);
    expect(trial.engine.refused).toEqual([]);
    expect(brokenPrefixes(trial.engine.served)).toEqual([]);
    expect(await trial.recorded()).toEqual([]);
    expect(added.at(-1)).toBeGreaterThan(5);
    // Nothing that a checkpointer writes and reads again makes memprefix take a prompt for another.
    expect(stable.slice(1)).toEqual(lengths.slice(0, -1));
    const { values } = (await agent.graph.getState(CALL)) as { readonly values: { readonly messages: BaseMessage[] } };
    expect(values.messages.filter(({ type }) => type === "human").map(({ content }) => content)).toEqual(TURNS);
    expect(JSON.stringify(values)).not.toContain("<memories>");
  });
});
