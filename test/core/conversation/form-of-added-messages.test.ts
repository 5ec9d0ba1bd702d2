import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RETENTION_NAMES } from "../../../src/core/conversation/conversation.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { assistant, memory, toolExchange, UserScope, user } from "../compose/scope-fixture.js";
import { expectPromises } from "../prompt/prompt-promises.js";

/** How a client writes its messages: some of the types that clients have allow only one of the two. */
type Form = "text" | "parts";

const anyTurn = fc.record({
  found: fc.uniqueArray(fc.integer({ min: 0, max: 7 }), { maxLength: 4 }),
  hasTool: fc.boolean(),
  inResult: fc.boolean(),
  retention: fc.constantFrom(...RETENTION_NAMES),
});
const anyConversation = fc.array(anyTurn, { minLength: 1, maxLength: 8 });

function written(message: ChatMessage, form: Form): ChatMessage {
  return form === "text" || typeof message.content !== "string"
    ? message
    : { ...message, content: [{ type: "text", text: message.content }] };
}

function added(n: number, hasTool: boolean): ChatMessage[] {
  if (hasTool) return [...(n === 0 ? [user("Look.")] : []), ...toolExchange(`Result ${n}`)];
  return n === 0 ? [user("Q: 0")] : [assistant(`Answer ${n}`), user(`Q: ${n}`)];
}

const formOf = ({ content }: ChatMessage): Form | null =>
  Array.isArray(content) ? "parts" : typeof content === "string" ? "text" : null;

describe("the messages of a prompt", () => {
  it("all have the form in which the client writes its own, also once it writes its history in the other", () => {
    const forms = fc.array(fc.constantFrom<Form>("text", "parts"), { minLength: 8, maxLength: 8 });
    const property = fc.property(anyConversation, forms, fc.boolean(), (turns, forms, keepsForm) => {
      const [scope, restarted] = [new UserScope(), new UserScope()];
      const history: ChatMessage[] = [];
      for (const [n, { found, hasTool, inResult, retention }] of turns.entries()) {
        history.push(...added(n, hasTool));
        const form = forms[keepsForm ? 0 : n] as Form;
        const retrieved = found.map((id) => memory(`m${id}`));
        const messages = history.map((message) => written(message, form));
        const options = { conversation: "c", retention, inResult };
        const composition = scope.compose(messages, retrieved, options);
        expectPromises(composition, retrieved);
        restarted.restart();
        const again = restarted.compose(messages, retrieved, options);
        expect([again.messages, again.plan]).toEqual([composition.messages, composition.plan]);
        const others = composition.messages.filter((message) => ![form, null].includes(formOf(message)));
        expect(others).toEqual([]);
      }
    });
    fc.assert(property, { numRuns: 250 });
  });
});
