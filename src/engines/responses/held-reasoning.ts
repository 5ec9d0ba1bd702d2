import { isSealed, unsealed } from "../turns/carried-reasoning.js";
import { type JsonObject, listIn, record } from "../upstream/json-values.js";

/**
 * A Responses request for an engine that has the API, without what memstem sealed in reasoning items while the engine had chat completions
 * only: the engine's own signatures are none of those. The text stays, as content; an item without one goes, and with OpenAI's own API all of
 * them, which it does not know.
 */
export function withoutSealedReasoning(body: JsonObject, { isOpenAi }: { readonly isOpenAi: boolean }): JsonObject {
  if (!Array.isArray(body["input"])) return body;
  const input = listIn(body["input"]).flatMap((item) => {
    const { encrypted_content: seal, ...own } = record(item);
    if (!isSealed(seal)) return [item];
    const text = unsealed(seal)?.text;
    const given = listIn(own["content"]);
    const content = given.length > 0 || text === undefined ? given : [{ type: "reasoning_text", text }];
    const isEmpty = content.length === 0 && listIn(own["summary"]).length === 0;
    return isOpenAi || isEmpty ? [] : [{ ...own, content }];
  });
  return { ...body, input };
}
