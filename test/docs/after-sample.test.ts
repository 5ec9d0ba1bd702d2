import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { childOutput } from "../child-output.js";
import { temporaryFolder } from "../temporary-folders.js";
import { ROOT, readPages, samplesOf } from "./pages.js";

/** What the reader's own code has: a search that finds two memories, and an engine that prints the messages that it is asked. */
const READERS = `
  const [userId, conversationId, instructions, model] = ["ana", "trip", "Be brief.", "any"];
  const history = [{ role: "user", content: "Hello." }, { role: "assistant", content: "Hello, Ana." }];
  const question = "Where should we eat?";
  const memory = { search: async (asked, { filters, topK }) => {
    if (asked !== question || filters.user_id !== userId || topK !== 20) throw new Error("another search");
    return { results: [{ id: "m1", memory: "Ana is vegetarian." }, { id: "m2", memory: "Ana is in Lisbon." }] };
  } };
  const openai = { chat: { completions: { create: async ({ messages }) => console.log(JSON.stringify(messages)) } } };
`;

const samples = readPages()
  .filter(({ path }) => path === "README.md")
  .flatMap(samplesOf)
  .filter(({ language }) => language === "ts");

describe("the README's code", () => {
  const directory = temporaryFolder();

  /** Runs a sample, which is JavaScript as it stands, and gives the messages that the engine was asked. */
  async function asked(beginning: string): Promise<unknown> {
    const text = samples.find((sample) => sample.text.startsWith(beginning))?.text ?? "";
    const built = pathToFileURL(join(ROOT, "dist/index.js")).href;
    writeFileSync(join(directory, "sample.mjs"), `${READERS}${text.replace('"memprefix"', JSON.stringify(built))}`);
    const child = spawn(process.execPath, ["sample.mjs"], { cwd: directory });
    const output = childOutput(child);
    const [code] = (await once(child, "close")) as [number];
    expect({ code, stderr: output.stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(output.stdout) as unknown;
  }

  it("asks the engine with the memories in the instructions before, and in the question after", async () => {
    const said = [
      { role: "user", content: "Hello." },
      { role: "assistant", content: "Hello, Ana." },
    ];
    const list = "- Ana is vegetarian.\n- Ana is in Lisbon.";
    expect(await asked("// Before")).toEqual([
      { role: "system", content: `Be brief.\nUser Memories:\n${list}` },
      ...said,
      { role: "user", content: "Where should we eat?" },
    ]);
    const section = "<memories>\n- Ana is vegetarian.\n- Ana is in Lisbon.\n</memories>";
    expect(await asked("// After")).toEqual([
      { role: "system", content: "Be brief." },
      ...said,
      { role: "user", content: `${section}\n\nWhere should we eat?` },
    ]);
  });
});
