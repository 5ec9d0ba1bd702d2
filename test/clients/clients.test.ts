import { describe, expect, it } from "vitest";
import { documentedTable, rowOf } from "./client-table.js";
import { LIGHT_CLIENTS, lightClient } from "./light-clients.js";
import { tryClient, wrongIn } from "./tried-client.js";

/** Those that are too large to be development dependencies are tried by `npm run clients`. */
describe("a client as its users write it", () => {
  it.each(LIGHT_CLIENTS)(
    "%s: prompts begin with those before, usage is fed back",
    { timeout: 180_000 },
    async (name) => {
      const client = await tryClient(lightClient(name));
      expect(wrongIn(client)).toEqual([]);
      expect(client.tried.length).toBeGreaterThan(0);
      expect(documentedTable()).toContain(`\n${rowOf(client)}`);
    },
  );
});
