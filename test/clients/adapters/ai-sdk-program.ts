import { type LanguageModel, wrapLanguageModel } from "ai";
import { memstemMiddleware } from "memstem/ai-sdk";
import { createMemstemClient } from "memstem/client";
import { aiSdkUses } from "../ai-sdk-uses.js";
import { type ClientProgram, runProgram } from "../client-program.js";

type Model = Parameters<typeof wrapLanguageModel>[0]["model"];

/** Runs a program whose model asks the engine itself; the service only composes its prompts. */
export function runMiddleware(about: Omit<ClientProgram, "uses" | "identity">, modelOf: (engine: string) => Model) {
  runProgram({
    ...about,
    identity: "options",
    uses: aiSdkUses(
      ({ base, engine, headers }): LanguageModel =>
        wrapLanguageModel({
          model: modelOf(engine),
          middleware: memstemMiddleware({
            memstem: createMemstemClient({ url: base }),
            userId: headers["x-memstem-user"] ?? "",
            conversationId: headers["x-memstem-conversation"] ?? "",
          }),
        }),
    ),
  });
}
