import { expect } from "vitest";
import type { z } from "zod";
import * as wire from "../../../src/http/contracts/usage-contract.js";
import { usageRequestResult } from "../../../src/http/contracts/usage-contract.js";
import type { ServedApp } from "../server/served-app.js";

const ANSWERS = {
  summary: wire.usageSummaryResult,
  requests: wire.usageRequestsResult,
  request: usageRequestResult,
} as const;

type View = keyof typeof ANSWERS;

/** Asks for a view, and checks it against its contract, which has to name every field. */
export async function usageOf<V extends View>(
  app: Pick<ServedApp, "send">,
  view: V,
  query: Readonly<Record<string, string>> = {},
): Promise<z.output<(typeof ANSWERS)[V]>> {
  const { status, text } = await app.send("GET", `/usage/${view}?${new URLSearchParams(query)}`);
  expect({ status, text }).toMatchObject({ status: 200 });
  const json: unknown = JSON.parse(text);
  const answer = ANSWERS[view].parse(json) as z.output<(typeof ANSWERS)[V]>;
  expect(answer).toEqual(json);
  return answer;
}
