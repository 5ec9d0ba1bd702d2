import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { standIn } from "../stand-in.js";
import { writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

/** As many conversations and questions as LoCoMo's published file has; what they say is made up. */
function published(): string {
  const counts = [199, 199, 199, 199, 199, 199, 198, 198, 198, 198];
  const conversations = counts.map((questions, n) => ({
    sample_id: `conv-${n}`,
    conversation: { session_1_date_time: "May", session_1: [{ speaker: "Ana", dia_id: "D1:1", text: "I keep bees." }] },
    observation: { session_1_observation: { Ana: [["Ana keeps bees.", "D1:1"]] } },
    qa: Array.from({ length: questions }, (_, at) => ({
      question: `What does Ana keep, ${at}?`,
      answer: "Bees",
      category: 4,
      evidence: ["D1:1"],
    })),
  }));
  return JSON.stringify(conversations);
}

describe("memprefix eval locomo --download", () => {
  const memprefix = commands();
  let server = "";
  let asked = 0;
  let answer: { readonly status: number; readonly body: string };

  beforeEach(async () => {
    asked = 0;
    server = await standIn((_request, response) => {
      asked++;
      response.writeHead(answer.status).end(answer.body);
    });
  });

  const data = () => join(memprefix.root, "data", "locomo10.json");
  const command = (...more: string[]) => {
    const which = ["--conversations", "conv-3", "--limit", "1", "--k", "1", "--policies", "readme"];
    const files = ["--data", data(), "--out", join(memprefix.root, "out")];
    return ["eval", "locomo", ...files, "--download", `${server}/locomo10.json`, ...which, ...more];
  };

  it("fetches the published file once, and runs on it", async () => {
    answer = { status: 200, body: published() };
    expect(await memprefix.run(command())).toMatchObject({ code: 0 });
    expect(readFileSync(data(), "utf8")).toBe(answer.body);
    expect(writtenRun(join(memprefix.root, "out")).records).toHaveLength(1);
    expect(await memprefix.run(command("--resume"))).toMatchObject({ code: 0 });
    expect(asked).toBe(1);
  });

  it.each([
    ["a file that ends early", 200, published().slice(0, 1_000), /is no JSON/],
    [
      "fewer conversations",
      200,
      JSON.stringify(JSON.parse(published()).slice(1)),
      /is not the published file: it has 9 conversations and 1787 questions, which should be 10 and 1986/,
    ],
    ["something else", 200, '{"message":"hello"}', /not a LoCoMo file/],
    ["a page that is not there", 404, "nothing", /cannot download .*: it answered with status 404/],
  ])("refuses %s, and writes nothing", async (_what, status, body, says) => {
    answer = { status, body };
    const { code, stdout, stderr } = await memprefix.run(command());
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^memprefix: .*\n$/);
    expect(stderr).toMatch(says);
    expect(existsSync(join(memprefix.root, "data")) ? readdirSync(join(memprefix.root, "data")) : []).toEqual([]);
    expect(existsSync(join(memprefix.root, "out"))).toBe(false);
  });
});
