import { beforeEach, describe, expect, it } from "vitest";
import { openAiEngine, sendJson, wholeAnswer } from "../routes/openai-engine.js";
import { servedApp } from "../server/served-app.js";
import { OpenApiDocument } from "./openapi-document.js";

describe("an example of the OpenAPI document", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });
  let document: OpenApiDocument;
  beforeEach(async () => {
    document = await OpenApiDocument.of(app);
  });

  it("stands with every JSON body, and is what its schema says", () => {
    const { examples } = document;
    expect(examples.map(({ operationId }) => operationId).toSorted()).toEqual(document.jsonBodies.toSorted());
    expect(examples.filter((example) => document.issuesOf(example).length > 0)).toEqual([]);
  });

  it("is what the service takes", async () => {
    engine.behave((_request, response) =>
      sendJson(
        response,
        200,
        wholeAnswer("Yes.", {
          prompt_tokens: 9,
          completion_tokens: 1,
          total_tokens: 10,
          prompt_tokens_details: { cached_tokens: 0 },
        }),
      ),
    );
    const steps = [
      ["compose", "/compose"],
      ["feedback", "/feedback"],
      ["evict", "/evict"],
      ["composeBatch", "/compose/batch"],
      ["createChatCompletion", "/v1/chat/completions"],
      ["createResponse", "/v1/responses"],
      ["createMessage", "/v1/messages"],
    ] as const;
    for (const [operationId, path] of steps) {
      const body = document.examples.find((example) => example.operationId === operationId)?.value;
      expect({ operationId, status: (await app.send("POST", path, body)).status }).toEqual({
        operationId,
        status: 200,
      });
    }
  });
});
