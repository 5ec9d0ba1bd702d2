import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/** A page of the documentation, by its path from the project's root. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** A fenced block of a page. */
export interface Sample {
  readonly page: string;
  readonly line: number;
  /** What stands behind the fence; empty where nothing does. */
  readonly language: string;
  readonly text: string;
  /** The block that follows with nothing between, if it shows output; null where none does. */
  readonly shown: string | null;
}

/** Every page: the README, CONTRIBUTING and everything below docs. */
export function readPages(): readonly Page[] {
  const below = readdirSync(join(ROOT, "docs"), { recursive: true }).map((name) => join("docs", String(name)));
  const paths = ["README.md", "CONTRIBUTING.md", ...below].filter(
    (path) => path.endsWith(".md") && existsSync(join(ROOT, path)),
  );
  return paths.toSorted().map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

/** The fenced blocks of a page, first to last. */
export function samplesOf({ path, text }: Page): readonly Sample[] {
  const fences = [...text.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)];
  return fences.map((fence, at) => {
    const [whole, language = "", body = ""] = fence;
    const next = fences[at + 1];
    const isNextShown =
      next !== undefined &&
      text.slice(fence.index + whole.length, next.index).trim() === "" &&
      ["", "json"].includes(next[1] ?? "");
    return {
      page: path,
      line: text.slice(0, fence.index).split("\n").length,
      language,
      text: body,
      shown: isNextShown ? (next[2] ?? "") : null,
    };
  });
}

/** What the reader's own code has, where a sample does not make it. */
export const READERS = `
  import type { Memory } from "mem0ai/oss";
  import type OpenAIClient from "openai";
  import type { createMemprefix } from "memprefix";
  declare global {
    const memory: Memory;
    const openai: OpenAIClient;
    const memprefix: ReturnType<typeof createMemprefix>;
    const model: string;
    const instructions: string;
    const history: OpenAIClient.ChatCompletionMessageParam[];
    const question: string;
    const userId: string;
    const conversationId: string;
  }
`;
