import Anthropic from "@anthropic-ai/sdk";
import { expect } from "vitest";
import type { ServedApp } from "../server/served-app.js";

/** Anthropic's client with nothing changed but its address, and the user's name in a header. */
export function messagesClientOf(
  app: Pick<ServedApp, "base">,
  headers: Record<string, string> = { "x-memprefix-user": "ada" },
) {
  return new Anthropic({
    baseURL: app.base,
    apiKey: "sk-ant-of-the-client",
    maxRetries: 0,
    defaultHeaders: { connection: "close", ...headers },
  });
}

/** The error that Anthropic's client raises. */
export async function messagesErrorOf(attempt: Promise<unknown>) {
  const error = await attempt.then(
    () => expect.fail("succeeded"),
    (raised: unknown) => raised,
  );
  if (error instanceof Anthropic.APIError) return error;
  throw error;
}
