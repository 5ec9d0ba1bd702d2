import { describe, expect, it } from "vitest";
import { servedApp } from "../http/server/served-app.js";
import { runPageProgram } from "../integrations/page-program.js";

describe("docs/client.md", () => {
  const app = servedApp();

  it("has a program that runs against a service", async () => {
    const { code, stdout, stderr } = await runPageProgram("docs/client.md", { MEMPREFIX_URL: app.base });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.split("\n")).toEqual([
      "<memories>",
      "- Ana is vegetarian.",
      "- Ana is in Lisbon this week.",
      "</memories>",
      "",
      "Where should we eat tonight?",
      expect.stringMatching(/^Request req-[0-9a-f]{32} has 31 tokens\. /),
      "0 2",
      "1 2",
      "422 [ { field: 'messages', message: 'must not be empty' } ]",
      "",
    ]);
  });
});
