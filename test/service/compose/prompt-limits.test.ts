import { describe, expect, it } from "vitest";
import type { ComposeRequest } from "../../../src/service/compose/compose-request.js";
import { PromptLimits } from "../../../src/service/compose/prompt-limits.js";
import type { TokenRatios } from "../../../src/service/learning/engine-measures.js";

const limits = new PromptLimits(
  { defaults: {} } as ConstructorParameters<typeof PromptLimits>[0],
  {
    ratioFor: () => 1,
  } as unknown as TokenRatios,
);

describe("the engine's limit of a prompt, and one that it was learnt to accept", () => {
  it.each([
    [100, 50],
    [50, 100],
  ])("are both kept: %d and %d", (acceptedTokens, promptTokens) => {
    const destination = { promptTokens, besideTokens: 0, model: "m" };
    const request = { userId: "ana", acceptedTokens, destination } as unknown as ComposeRequest;
    expect(limits.of(request).acceptedTokens).toBe(50);
  });
});
