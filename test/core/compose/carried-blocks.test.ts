import { describe, expect, it } from "vitest";
import { endlessLookup } from "../../../src/core/cache/engine-cache.js";
import { type Composition, compose } from "../../../src/core/compose/compose.js";
import type { ComposeInput } from "../../../src/core/compose/compose-input.js";
import { ORDERING_POLICIES } from "../../../src/core/compose/policies.js";
import { EMPTY_SCOPE, ScopeState } from "../../../src/core/compose/scope-state.js";
import { Conversation } from "../../../src/core/conversation/conversation.js";
import { ENGINE_MODELS } from "../../../src/core/cost/engine-model.js";
import type { ConversationId } from "../../../src/core/text/ids.js";
import { assistant, countTokens, memory, system, user } from "./scope-fixture.js";

const INSTRUCTIONS = system("You help. ".repeat(60));
const MAPS = memory(
  "maps",
  "Ana collects old maps of the northern coast and shows them to her guests. ".repeat(4).trim(),
);
const TEAS = memory("teas", MAPS.text.replaceAll("maps", "teas"));
const EXCHANGE = memory("pin", "User: My PIN is 4711.\nAssistant: Noted.");
const ASKED = user("Which maps?");
/** An epoch begins: what was served in front of a conversation's messages may be carried there. */
const EPOCH: Partial<ComposeInput> = {
  historyTerms: { added: 0, ratio: 2, isByCost: true, mayCut: true, window: { kind: "begins", reason: "summary" } },
};

class Served {
  readonly state = new ScopeState(EMPTY_SCOPE, countTokens);
  readonly conversation = { id: "c" as ConversationId, turns: new Conversation([]) };

  compose(input: Pick<ComposeInput, "messages" | "memories"> & Partial<ComposeInput>): Composition {
    return compose(this.state, {
      conversation: null,
      isOurs: () => false,
      policy: ORDERING_POLICIES["prefix-exact"],
      memoryBudgetTokens: null,
      memoryBudgetRatio: null,
      engine: ENGINE_MODELS.gpu,
      cache: endlessLookup(),
      now: 1,
      annotations: true,
      retention: "keep",
      countTokens,
      ...input,
      messages: [INSTRUCTIONS, ...input.messages],
    });
  }
}

function timesIn({ messages }: Composition, text: string): number {
  return JSON.stringify(messages).split(text).length - 1;
}

describe("blocks that are carried", () => {
  /** A single prompt has served `before` in front of the maps; then an epoch of a conversation begins. */
  const epoch = (before: typeof MAPS, input: Partial<ComposeInput>, history = [user("Hello."), assistant("Hi.")]) => {
    const served = new Served();
    served.compose({ messages: [user("What now?")], memories: [before, MAPS] });
    const { conversation } = served;
    for (const said of [1, 3, 5].filter((count) => count <= history.length))
      served.compose({ conversation, messages: history.slice(0, said), memories: [] });
    const found = { memories: [MAPS], messages: [...history, ASKED] };
    return served.compose({ conversation, ...EPOCH, ...found, ...input });
  };

  it("stand in front of an epoch, where they were served before", () => {
    expect(timesIn(epoch(TEAS, {}), TEAS.text)).toBe(1);
  });

  const said = [user("Hello."), assistant("Hi."), user("My PIN is 4711."), assistant("Noted."), user("Next.")];
  const ask = (messages: typeof said, memories: ComposeInput["memories"]) => {
    const later = [...messages, assistant("Yes."), ASKED];
    return epoch(EXCHANGE, { messages: later, memories }, said);
  };

  it("are no exchange that its client has redacted, whether it was found again or not", () => {
    const redacted = said.map((message) =>
      message.content === "My PIN is 4711." ? user("My PIN is [redacted].") : message,
    );
    for (const memories of [[EXCHANGE, MAPS], [MAPS]]) expect(timesIn(ask(redacted, memories), "4711")).toBe(0);
  });

  it("are no exchange that the messages have", () => {
    for (const memories of [[EXCHANGE, MAPS], [MAPS]]) expect(timesIn(ask(said, memories), "4711")).toBe(1);
  });

  it("are no memory that another one of the request says", () => {
    const served = new Served();
    const [porto, both] = [
      memory("porto", "Ana lives in Porto."),
      memory("both", "Ana lives in Porto. She has a dog."),
    ];
    served.compose({ messages: [user("What now?")], memories: [porto, MAPS] });
    const budget = { policy: ORDERING_POLICIES["carry-over"], memoryBudgetTokens: 2_000 };
    const composed = served.compose({ messages: [ASKED], memories: [both, porto, MAPS], ...budget });
    expect(composed.turn.injection.blocks).toHaveLength(2);
    expect(composed.memories.map(({ memoryId }) => memoryId).toSorted()).toEqual(["both", "maps", "porto"]);
  });
});
