import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { composeBodyWithNulls } from "../../../src/http/contracts/compose-contract.js";
import { fuzzedRequest } from "../contracts/fuzzed-requests.js";

describe("a body of POST /compose", () => {
  it("is read by zod's synchronous parser as by its asynchronous one", async () => {
    await fc.assert(
      fc.asyncProperty(fuzzedRequest, async ({ body }) => {
        let value: unknown;
        try {
          value = JSON.parse(String(body));
        } catch {
          return;
        }
        const atOnce = composeBodyWithNulls.safeParse(value);
        const { success, data } = await composeBodyWithNulls.safeParseAsync(value);
        expect({ success: atOnce.success, data: atOnce.data }).toEqual({ success, data });
      }),
      { numRuns: 2_000 },
    );
  });
});
