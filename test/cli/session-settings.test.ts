import { describe, expect, it } from "vitest";
import { identityOf, readSettings } from "../../src/cli/settings.js";

const issueOf = (environment: Record<string, string>) => {
  try {
    readSettings(environment);
  } catch (error) {
    return (error as Error).message;
  }
  return "";
};

describe("MEMPREFIX_IDENTITY", () => {
  it("lists places in their order", () => {
    const settings = readSettings({
      MEMPREFIX_IDENTITY:
        "user=header:X-User,user=header:X-Other,user=body:metadata.user_id,conversation=header:x-session",
    });
    expect(identityOf(settings)).toEqual({
      user: [
        { from: "header", name: "x-user" },
        { from: "header", name: "x-other" },
        { from: "body", path: ["metadata", "user_id"] },
      ],
      agent: [],
      conversation: [{ from: "header", name: "x-session" }],
      sideCall: [{ from: "header", name: "x-openwebui-task" }],
    });
  });

  it("may tell side calls by a client's prompts", () => {
    const { sideCall } = identityOf(readSettings({ MEMPREFIX_IDENTITY: "side_call=prompt:open-webui" }));
    expect(sideCall).toContainEqual({ from: "prompt", client: "open-webui" });
    expect(issueOf({ MEMPREFIX_IDENTITY: "side_call=prompt:other" })).toContain("MEMPREFIX_IDENTITY");
    expect(issueOf({ MEMPREFIX_IDENTITY: "user=prompt:open-webui" })).toContain("MEMPREFIX_IDENTITY");
  });

  it.each([
    "user",
    "user=x",
    "tenant=header:x",
    "user=header:x y",
    "user=header:X-Memprefix-User",
    "user=body:",
    "user=body:a..b",
    "",
  ])("rejects %j", (value) => {
    const issue = issueOf({ MEMPREFIX_IDENTITY: `user=header:x-a,${value}` });
    expect(issue).toContain("MEMPREFIX_IDENTITY");
    expect(issue).toContain(JSON.stringify(value));
  });
});

describe("MEMPREFIX_ROUTER", () => {
  it("is a known router, or a header", () => {
    expect(readSettings({ MEMPREFIX_ROUTER: "dynamo" }).router).toEqual({ header: "x-dynamo-session-id" });
    expect(readSettings({ MEMPREFIX_ROUTER: "header:X-Session" }).router).toEqual({ header: "x-session" });
    expect(issueOf({ MEMPREFIX_ROUTER: "other" })).toContain("MEMPREFIX_ROUTER");
    expect(issueOf({ MEMPREFIX_ROUTER: "header:" })).toContain("MEMPREFIX_ROUTER");
  });
});
