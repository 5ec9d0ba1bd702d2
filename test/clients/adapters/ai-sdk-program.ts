import { type LanguageModel, wrapLanguageModel } from "ai";
import { memprefixMiddleware } from "memprefix/ai-sdk";
import { createMemprefixClient } from "memprefix/client";
import { aiSdkUses } from "../ai-sdk-uses.js";
import { type ClientProgram, runProgram } from "../client-program.js";

type Model = Parameters<typeof wrapLanguageModel>[0]["model"];

/** Runs a program whose model asks the engine itself; the service only composes its prompts. */
export function runMiddleware(api: ClientProgram["api"], modelOf: (engine: string) => Model) {
  runProgram({
    client: "AI SDK's middleware",
    api,
    uses: aiSdkUses(
      ({ base, engine, headers }): LanguageModel =>
        wrapLanguageModel({
          model: modelOf(engine),
          middleware: memprefixMiddleware({
            memprefix: createMemprefixClient({ url: base }),
            userId: headers["x-memprefix-user"] ?? "",
            conversationId: headers["x-memprefix-conversation"] ?? "",
          }),
        }),
    ),
  });
}
