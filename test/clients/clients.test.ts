import { describe, expect, it } from "vitest";
import { LIGHT_CLIENTS, lightClient } from "./light-clients.js";
import { tryClient } from "./tried-client.js";

/** Those that are too large to be development dependencies are tried by `npm run clients`. */
describe("a client as its users write it", () => {
  it.each(LIGHT_CLIENTS)("%s: prompts begin with those before, usage is fed back", async (name) => {
    const { uses, wrong } = await tryClient(lightClient(name));
    expect(wrong).toEqual([]);
    expect(uses.length).toBeGreaterThan(0);
  });
});
