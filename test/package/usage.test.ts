import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { installedPackage } from "./installed-package.js";

describe("an installed memprefix", () => {
  const memprefix = installedPackage();
  const json = (text: string) => JSON.parse(text) as unknown;

  it("composes in-process, and goes on after it was opened again", async () => {
    memprefix.write(
      "library.js",
      `
      import { createMemprefix, InvalidRequestError } from "memprefix";
      const prompts = [];
      const history = [];
      for (const [question, memories] of [["Where?", ["in Paris"]], ["Why?", ["in Paris", "for love"]]]) {
        const memprefix = createMemprefix({ dataDir: "library-data", source: { kind: "none" } });
        history.push({ role: "user", content: question });
        const found = { results: memories.map((memory) => ({ id: memory, memory })) };
        const { messages } = await memprefix.compose({ userId: "ada", conversationId: "c", messages: history, memories: found, retention: "keep" });
        prompts.push(messages);
        history.push({ role: "assistant", content: "So." });
        const refused = await memprefix.compose({ userId: "", query: "x" }).catch((error) => error);
        if (!(refused instanceof InvalidRequestError)) throw refused;
        await memprefix.close();
      }
      console.log(JSON.stringify(prompts));
      `,
    );
    const { code, stdout, stderr } = await memprefix.node(["library.js"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const first = { role: "user", content: "<memories>\n- in Paris\n</memories>\n\nWhere?" };
    expect(json(stdout)).toEqual([
      [first],
      [
        first,
        { role: "assistant", content: "So." },
        {
          role: "user",
          content: "<memories>\n- for love\n</memories>\nMost relevant: in Paris\n\nWhy?",
        },
      ],
    ]);
  });

  it("has no other doors than its exports", async () => {
    memprefix.write("inside.js", 'await import("memprefix/dist/store/sqlite/open.js");');
    expect((await memprefix.node(["inside.js"])).stderr).toContain("ERR_PACKAGE_PATH_NOT_EXPORTED");
    memprefix.write(
      "manifest.js",
      'import it from "memprefix/package.json" with { type: "json" }; console.log(it.version);',
    );
    expect((await memprefix.node(["manifest.js"])).stdout).toBe(`${memprefix.version}\n`);
  });

  it("runs as a command, with its migrations and its sample found", async () => {
    expect(await memprefix.command(["--version"])).toEqual({ code: 0, stdout: `${memprefix.version}\n`, stderr: "" });
    expect(await memprefix.command(["keys", "add"])).toMatchObject({ code: 0, stderr: "" });
    expect(existsSync(join(memprefix.folder, "memprefix-data/memprefix.db"))).toBe(true);
  });
});
