import OpenAI, { APIError } from "openai";
import { expect, vi } from "vitest";
import type { ServedApp } from "../server/served-app.js";
import { storedExchanges } from "./stored-rows.js";

/** OpenAI's client with nothing changed but its address, and the user's name in a header. */
export function clientOf(
  app: Pick<ServedApp, "base">,
  headers: Record<string, string> = { "x-memprefix-user": "ada" },
): OpenAI {
  return new OpenAI({
    baseURL: `${app.base}/v1`,
    apiKey: "sk-of-the-client",
    maxRetries: 0,
    defaultHeaders: { connection: "close", ...headers },
  });
}

/** The body of a chat that asks one question. */
export function ask(content: string) {
  return { model: "stub-1", messages: [{ role: "user" as const, content }] };
}

/** The error that OpenAI's client raises. */
export async function errorOf(attempt: Promise<unknown>): Promise<APIError> {
  const error = await attempt.then(
    () => expect.fail("succeeded"),
    (raised: unknown) => raised,
  );
  if (error instanceof APIError) return error;
  throw error;
}

/** What the engine reported of the first request, once it is stored. */
export function observedBy(app: ServedApp): Promise<Record<string, number>> {
  return vi.waitFor(() => {
    const stored = storedExchanges(app.database).requests[0]?.observed;
    expect(stored).toBeTypeOf("object");
    expect(stored).not.toBeNull();
    return stored as unknown as Record<string, number>;
  });
}
