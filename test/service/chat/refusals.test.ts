import { describe, expect, it } from "vitest";
import { KnownConstraints } from "../../../src/service/chat/refusals.js";

describe("what one tenant's client has an engine refuse", () => {
  it("changes neither the length nor the placement of another tenant's prompts", () => {
    const known = new KnownConstraints(() => 0);
    const [one, other] = [{}, {}].map((tenant) => ({ tenant, userId: "ana", model: "m" })) as [
      Parameters<typeof known.of>[0],
      Parameters<typeof known.of>[0],
    ];
    known.learn(one, { acceptedTokens: 100, inResult: true });
    expect(known.of(one)).toEqual({ acceptedTokens: 100, inResult: true });
    // The placement is the model's; the length is what one user's client may have caused.
    expect(known.of({ ...one, userId: "bob" })).toEqual({ acceptedTokens: null, inResult: true });
    expect(known.of(other)).toEqual({ acceptedTokens: null, inResult: false });
  });
});
