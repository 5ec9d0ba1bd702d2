import Anthropic from "@anthropic-ai/sdk";
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
