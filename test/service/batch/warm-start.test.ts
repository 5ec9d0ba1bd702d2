import { describe, expect, it } from "vitest";
import type { RequestId } from "../../../src/core/index.js";
import { composeBatch } from "../../../src/service/batch/batch.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { ComposeOptions } from "../../../src/service/fields/call-options.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { composeWith, memories, openService } from "../compose/service-fixture.js";

const FACTS = {
  vegan: "Cy is vegan.",
  porto: "Cy lives in Porto.",
  cooks: "Cy cooks on Sundays.",
  fairs: "Cy likes fairs.",
};
const found = (...names: (keyof typeof FACTS)[]) =>
  memories(Object.fromEntries(names.map((name) => [name, FACTS[name]])));

const KNOWN = [found("vegan", "porto", "cooks"), found("porto", "vegan")];
const ASKED: ComposeOptions = {
  userId: "cy",
  query: "Which fair is near?",
  memories: found("fairs", "vegan", "porto"),
};

/** A service that composed the known searches of `cy` as a batch; their request ids. */
async function warm(more: Partial<ComposeOptions> = {}): Promise<{ service: Memprefix; ids: RequestId[] }> {
  const service = openService();
  const inputs = KNOWN.map((searched, index) => ({
    index,
    request: readComposeOptions({ userId: "cy", requestId: `known-${index}`, query: "?", memories: searched, ...more }),
  }));
  const options = { signal: new AbortController().signal };
  for await (const event of composeBatch(service.batches, inputs, options)) {
    if (event.kind === "failure") throw event.error;
  }
  return { service, ids: KNOWN.map((_, at) => `known-${at}` as RequestId) };
}

const orderOf = async (service: Memprefix, options: ComposeOptions = ASKED) => {
  const { blocks, plan } = await composeWith(service, options);
  const expected = plan.expectedCachedTokens;
  return { placed: blocks.map(({ memoryId }) => memoryId), expected };
};

describe("searches that are known before a user's first request", () => {
  it("decide the order of what comes later, and of none of it expect that the engine has it, once it is said to be evicted", async () => {
    const { service, ids } = await warm();
    expect((await service.evict(ids)).evicted).toEqual(ids);
    expect(await orderOf(service)).toEqual({ placed: ["vegan", "porto", "fairs"], expected: 0 });
    expect(await orderOf(openService())).toEqual({ placed: ["fairs", "vegan", "porto"], expected: 0 });
  });

  it("are expected in the engine's cache where their prompts were sent to it", async () => {
    const { service } = await warm();
    const { placed, expected } = await orderOf(service);
    expect(placed).toEqual(["vegan", "porto", "fairs"]);
    expect(expected).toBeGreaterThan(0);
  });
});
