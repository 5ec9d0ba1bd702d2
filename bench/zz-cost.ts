import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { ENGINE_MODELS, promptCost, type ChatMessage } from "../src/core/index.js";
import { INSTRUCTION } from "../src/eval/base/instruction.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { chatTokenizer } from "../src/simulator/chat-tokens.js";
import { simulatedCache } from "../src/simulator/simulated-cache.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { openService } from "../test/service/compose/service-fixture.js";
const ANSWER = "yes".concat(" yes".repeat(119));
const traces = RECORDED_CONVERSATIONS.slice(0, Number(process.env.CONVS ?? 3)).map((n) => readRecordedTrace("/work/shared/data", n));
for (const [name, engine] of Object.entries(ENGINE_MODELS)) {
  if (process.env.LAW && process.env.LAW !== name) continue;
  for (const k of [20, 100]) for (const w of [8, 20]) {
    const row: string[] = [];
    let base = 0;
    for (const [arm, settings] of [["exact", { history: "exact" }], ["ext1.5", { history: "extended", historyRatio: 1.5 }], ["ext2", { history: "extended" }], ["auto2", { history: "auto" }], ["auto3", { history: "auto", historyRatio: 3 }]] as const) {
      let cost = 0, size = 0, pre = 0;
      for (const trace of traces) {
        const service = openService({ countTokens: countO200k, now: Date.now, engine });
        const cache = simulatedCache("radix"); const tokenize = chatTokenizer(encodeO200k);
        const said: ChatMessage[] = [];
        for (const [turn, { question, retrieved }] of trace.questions.slice(0, 120).entries()) {
          said.push({ role: "user", content: `${turn}. ${question}` });
          const memories = retrieved.slice(0, k).map((at) => ({ id: String(at), memory: trace.memories[at]?.memory ?? "" }));
          const { messages } = await service.compose(readComposeOptions({ userId: "ana", conversationId: "c", system: INSTRUCTION, messages: said.slice(-w), memories, ...settings }));
          const tokens = tokenize(messages);
          const c = cache.serve({ tokens }, 0).cachedTokens;
          cost += promptCost({ ...engine, blockTokens: 1 }, tokens.length, c); size += tokens.length; pre += tokens.length - c;
          const answered = { role: "assistant", content: ANSWER }; said.push(answered);
          cache.serve({ tokens: tokenize([...messages, answered]) }, 0);
        }
        await service.close();
      }
      if (arm === "exact") base = cost;
      row.push(`${arm} ${(cost / base).toFixed(3)} (${Math.round(size / 120 / traces.length)}, ${Math.round(pre / 120 / traces.length)})`);
    }
    console.log(name, k, w, row.join(" | "));
  }
}
