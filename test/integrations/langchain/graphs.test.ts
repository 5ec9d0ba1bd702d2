import { type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import {
  END,
  type LangGraphRunnableConfig,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { describe, expect, it } from "vitest";
import { composeMessages } from "../../../src/integrations/langgraph.js";
import { answerTo } from "../../clients/agent-model.js";
import { brokenPrefixes, QUESTIONS } from "../../clients/checked-prompts.js";
import { INSTRUCTIONS } from "../../clients/client-program.js";
import { agentTrial, weather } from "./agent-trial.js";

describe("a graph of LangGraph's", () => {
  const trial = agentTrial();

  it("whose node composes keeps plain messages, and its prompts begin with those before", async () => {
    const model = trial.model("gpt-5-mini").bindTools([weather]);
    const ids: string[] = [];
    const answering = async (state: typeof MessagesAnnotation.State, { configurable }: LangGraphRunnableConfig) => {
      const named = { userId: "ana", conversationId: String(configurable?.["thread_id"]) };
      const { messages, report } = await composeMessages(
        { memprefix: trial.memprefix, ...trial.options, ...named, onComposed: ({ requestId }) => ids.push(requestId) },
        [new SystemMessage(INSTRUCTIONS), ...state.messages],
      );
      const answer = await model.invoke(messages, { options: { headers: { "x-request-id": ids.at(-1) ?? "" } } });
      await report(answer);
      return { messages: [answer] };
    };
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("answering", answering)
      .addNode("tools", new ToolNode([weather]))
      .addEdge(START, "answering")
      .addConditionalEdges("answering", toolsCondition, ["tools", END])
      .addEdge("tools", "answering")
      .compile({ checkpointer: new MemorySaver() });
    let messages: BaseMessage[] = [];
    for (const question of QUESTIONS.steps) {
      const asked = { messages: [new HumanMessage(question)] };
      ({ messages } = await graph.invoke(asked, { configurable: { thread_id: "trip" } }));
      expect(messages.at(-1)?.text).toBe(answerTo(question));
    }
    expect(JSON.stringify(messages)).not.toContain("<memories>");
    expect([...trial.errors, ...trial.engine.refused]).toEqual([]);
    expect(brokenPrefixes(trial.engine.served)).toEqual([]);
    expect(await trial.recorded()).toEqual([]);
  });
});
