import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { tryClient } from "./tried-client.js";

const folder = fileURLToPath(new URL("../..", import.meta.url));
const programs = fileURLToPath(new URL("./programs", import.meta.url));
const files = readdirSync(programs).filter((name) => name.endsWith(".ts"));

describe("a client as its users write it", () => {
  it.each(files)("%s: prompts begin with those before, usage is fed back", { timeout: 180_000 }, async (name) => {
    const { tried } = await tryClient({ file: `${programs}/${name}`, folder });
    const wrong = tried.flatMap(({ use, engine, wrong }) => wrong.map((what) => `${use}, ${engine}: ${what}`));
    expect(wrong).toEqual([]);
    expect(tried.length).toBeGreaterThan(0);
  });
});
