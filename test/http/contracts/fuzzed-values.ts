import fc from "fast-check";
import { ENGINE_NAMES } from "../../../src/engines/adapters/engine-adapter.js";
import { hostileText } from "../../core/escaping/hostile-text.js";
import { TEMPLATE_TOKENS } from "../../core/escaping/template-tokens.js";

/** One of these, but for once in a while. */
export function mostly<T, U>(usual: fc.Arbitrary<T>, unusual: fc.Arbitrary<U>): fc.Arbitrary<T | U> {
  return fc.oneof({ weight: 24, arbitrary: usual }, { weight: 1, arbitrary: unusual });
}

/** Special tokens of public models, as they are and with something that nobody sees between. */
const markers = fc
  .array(
    fc.tuple(
      fc.constantFrom(...Object.values(TEMPLATE_TOKENS).flat()),
      fc.constantFrom("", "", "\u200b", "\u00ad", "\\"),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((tokens) => tokens.map(([token, between]) => token.slice(0, 1) + between + token.slice(1)).join(" tea "));
/** What a text of many characters is made of, so that reading it may take the square of its length. */
const REPEATED = [
  ...["<memories>\n", "<memories>\n[1] ", "tea <memories>\n", "[1]", "[1] a\n", "  a\n", "<", "<[", "[A", "<\u200b"],
  "/think",
  ...["a", " ", "\n", "\r\n", "\t", "1", "!", "茶", "\u0301", "👩‍👩‍👧‍👦", "\\", '\\"', '"', "ａ", "\u2028"],
  "[Doc_1][Doc_1]",
];
const huge = fc
  .tuple(fc.constantFrom(...REPEATED), fc.integer({ min: 5_000, max: 200_000 }))
  .map(([piece, length]) => piece.repeat(Math.ceil(length / piece.length)).slice(0, length));
const storable = hostileText.map((written) => `${written.replace(/[\0\p{Surrogate}]/gu, "")}tea`);
export const text = mostly(
  fc.oneof(
    { weight: 4, arbitrary: storable },
    { weight: 2, arbitrary: markers },
    fc.constantFrom("Where?", "x".repeat(300), "😀".repeat(50)),
  ),
  fc.oneof(hostileText, fc.constantFrom("", " ")),
);
/** A text of a message or a memory; now and then a very long one. */
export const written = fc.oneof({ weight: 80, arbitrary: text }, { weight: 1, arbitrary: huge });
/** Few names, so that requests meet what others left. */
export const name = mostly(fc.constantFrom("ada", "bo", "c", "1", "m-1", "m-2", "r-1", "r-2"), text);
const oddNumber = fc.oneof(
  fc.constantFrom(0, -1, 1.5, 1e9, 2 ** 53, -(2 ** 53), 1e308, Number.MIN_VALUE),
  fc.integer(),
);
export const count = mostly(fc.integer({ min: 1, max: 300 }), oddNumber);
export const anything = fc.jsonValue({ maxDepth: 4 });
export const role = mostly(fc.constantFrom("user", "assistant", "system", "tool", "developer"), text);
const parts = fc.array(mostly(fc.record({ type: fc.constant("text"), text: written }), fc.dictionary(name, anything)), {
  maxLength: 3,
});
export const message = fc.record(
  {
    role,
    content: mostly(written, fc.oneof(parts, fc.constant(null))),
    name: text,
    tool_calls: anything,
    tool_call_id: name,
  },
  { requiredKeys: ["role", "content"] },
);
export const history = fc
  .tuple(fc.array(message, { maxLength: 4 }), mostly(written, anything))
  .map(([before, question]) => [...before, { role: "user", content: question }]);
const memory = fc.record(
  { id: mostly(name, oddNumber), memory: written, score: oddNumber, metadata: anything },
  { requiredKeys: ["id", "memory"] },
);
export const memories = fc.oneof(
  fc.array(memory, { maxLength: 6 }),
  fc.record({ results: fc.array(memory, { maxLength: 6 }), relations: anything }, { requiredKeys: ["results"] }),
);
/** Names of policies, retentions and engines, and others. */
export const policy = mostly(
  fc.constantFrom("retrieval", "sorted", "context-pilot", "knowledge-tree", "prefix-exact", "carry-over"),
  text,
);
export const retention = mostly(fc.constantFrom("keep", "volatile", "ephemeral", "auto"), text);
export const engineName = mostly(fc.constantFrom(...ENGINE_NAMES), text);
