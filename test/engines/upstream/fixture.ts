import { readFileSync } from "node:fs";

/** What an engine answered, in the shape that its documentation gives. */
export interface UsageFixture {
  /** The page that the shape is from. */
  readonly source: string;
  readonly answer: unknown;
  readonly usage: Readonly<
    Record<"promptTokens" | "cachedTokens" | "writtenTokens" | "completionTokens", number | null>
  >;
}

/** Events of a streamed answer, as its documentation gives them. */
export interface StreamFixture {
  readonly source: string;
  readonly events: readonly unknown[];
}

export function usageFixture(name: string): UsageFixture {
  return read(name) as UsageFixture;
}

export function streamFixture(name: string): StreamFixture {
  return read(name) as StreamFixture;
}

function read(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../adapters/fixtures/${name}.json`, import.meta.url), "utf8"));
}
