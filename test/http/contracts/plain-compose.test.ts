import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { composeBodyWithNulls } from "../../../src/http/contracts/compose-contract.js";
import { plainComposeBody } from "../../../src/http/contracts/plain-compose.js";

/** As JSON has them; fields may be absent. */
const some = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record<T, never>(fields, { noNullPrototype: true, requiredKeys: [] });
const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ minLength: 1 }) },
  fc.string({ unit: "binary" }),
  fc.constantFrom("", " ", "\0", "\ud800", "é", " a", "a ", "a b", "\n", "x".repeat(256), "x".repeat(257)),
);
const message = some({ role: fc.constantFrom("system", "user", "assistant", "tool", "model"), content: text });
const memory = some({
  id: fc.oneof(text, fc.integer()),
  memory: text,
  rerankScore: fc.oneof(fc.double(), fc.constant(null)),
  created_at: text,
});
const memories = fc.array(memory, { maxLength: 4 });
const results = fc.record({ results: memories }, { noNullPrototype: true });
/** What is nearly a plain body, or is one. */
const body = some({
  user_id: text,
  agent_id: fc.option(text),
  conversation_id: fc.option(text),
  request_id: fc.option(text),
  query: fc.option(text),
  messages: fc.oneof(fc.array(message, { maxLength: 4 }), fc.constant(null), fc.jsonValue()),
  memories: fc.oneof(memories, results, fc.constant(null), fc.jsonValue()),
});
const other = fc.oneof(
  fc.tuple(body, fc.string(), fc.jsonValue()).map(([known, name, value]) => ({ ...known, [name]: value })),
  fc.tuple(body, fc.constantFrom("top_k", "engine", "annotations")).map(([known, name]) => ({ ...known, [name]: 5 })),
  fc.jsonValue(),
  fc.anything(),
);

/** A body of which every field may be absent is rarely plain, so these have what one needs. */
const id = fc.string({ minLength: 1, maxLength: 20 }).filter((given) => given.trim() !== "");
const plain = fc.record(
  {
    user_id: id,
    agent_id: id,
    conversation_id: id,
    request_id: fc.uuid(),
    query: id,
    messages: fc
      .array(fc.record({ role: fc.constantFrom("user", "assistant"), content: fc.string() }, { noNullPrototype: true }))
      .map((said) => [...said, { role: "user", content: "And now?" }]),
    memories: fc.array(fc.record({ id, memory: id }, { noNullPrototype: true })),
  },
  { noNullPrototype: true, requiredKeys: ["user_id"] },
);

/** Without fields that are undefined, as JSON has none. */
const present = (value: object) => Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined));

describe("a body of a compose accepted by its shape", () => {
  it("is one that the schema accepts, and says the same", () => {
    fc.assert(
      fc.property(fc.oneof({ weight: 4, arbitrary: body }, plain, other), (given) => {
        const accepted = plainComposeBody(given);
        if (accepted === null) return;
        const read = composeBodyWithNulls.safeParse(given);
        expect(read.success).toBe(true);
        expect(present(accepted)).toEqual(present(read.data as object));
      }),
      { numRuns: 3_000 },
    );
  });

  it("is every body of ids, a query, plain messages and memories", () => {
    fc.assert(
      fc.property(plain, (given) => {
        expect(plainComposeBody(given)).not.toBeNull();
      }),
    );
  });

  it("is none with a field from elsewhere", () => {
    const inherited = Object.create({ user_id: "ada", query: "Hello" }) as object;
    expect(plainComposeBody(inherited)).toBeNull();
    expect(plainComposeBody({ user_id: "ada", query: "Hello", top_k: 5 })).toBeNull();
  });
});
