import { describe, expect, it } from "vitest";
import { BlockRegister } from "../../../src/core/blocks/block-register.js";
import { recallKnown } from "../../../src/core/blocks/recall.js";
import { countTokens, memory } from "../compose/scope-fixture.js";

const KNOWN = [
  memory("tea", "The user likes green tea."),
  memory("home", "The user lives in Oslo."),
  memory("trip", "The user likes Oslo in winter."),
];

function registerOf(known: typeof KNOWN): BlockRegister {
  const register = new BlockRegister({ blocks: [], versions: [], forgotten: [] }, 1, countTokens);
  register.resolve(known);
  return register;
}

const recalled = (register: BlockRegister, query: string, topK = 10) =>
  recallKnown(register, query, topK).map(({ id }) => id);

describe("recalling what is known while the memory source is down", () => {
  it("gives what shares words with the query, rare words first, with the text as it stands", () => {
    const register = registerOf(KNOWN);
    expect(recalled(register, "Which GREEN city?")).toEqual(["tea"]);
    expect(recalled(register, "winter in Oslo, what does he likes?")).toEqual(["trip", "home", "tea"]);
    expect(recallKnown(register, "green", 1)).toEqual([KNOWN[0]]);
  });

  it("gives a memory's current text, so that asking with it changes nothing", () => {
    const register = registerOf([...KNOWN, memory("twin", KNOWN[0]?.text)]);
    register.resolve([memory("tea", "The user likes black tea.")]);
    const found = recallKnown(register, "green black tea", 9);
    register.drain();
    register.resolve(found);
    expect(register.drain()).toEqual({ blocks: [], versions: [], removedBlocks: [], forgotten: [] });
  });

  it("knows words of any script", () => {
    const register = registerOf([memory("a", "Живёт в Осло"), memory("b", "好き 緑茶")]);
    expect(recalled(register, "ОСЛО?")).toEqual(["a"]);
    expect(recalled(register, "緑茶")).toEqual(["b"]);
  });
});
