import { describe, expect, it } from "vitest";
import { CUT_MARK } from "../../../src/core/index.js";
import { servedApp } from "./served-app.js";

describe("a memory that is too long for a prompt", () => {
  const app = servedApp();
  const body = {
    user_id: "ada",
    conversation_id: "c",
    messages: [{ role: "user", content: "Where?" }],
    memories: [
      { id: "long", memory: "👩‍👩‍👧".repeat(20_000) },
      { id: "short", memory: "Ada hides the key." },
    ],
  };

  it("is given in part, with a mark and a warning that names it, and is the same memory the next time", async () => {
    const { messages, warnings, blocks } = await app.compose({ ...body, request_id: "r-1" });
    expect(messages).toMatchObject([
      { content: `<memories>\n- ${"👩‍👩‍👧".repeat(12_499)}${CUT_MARK}\n- Ada hides the key.\n</memories>\n\nWhere?` },
    ]);
    expect(blocks).toHaveLength(2);
    expect(warnings).toEqual([{ code: "memory_cut", message: expect.any(String), memory_ids: ["long"] }]);
    const again = await app.compose({ ...body, request_id: "r-1" });
    expect(again.messages).toEqual(messages);
    const next = await app.compose({
      ...body,
      messages: [...body.messages, { role: "assistant", content: "There." }, { role: "user", content: "Why?" }],
    });
    expect(next.blocks.map(({ placement }) => placement)).toEqual(["earlier_turn", "earlier_turn"]);
  });
});
