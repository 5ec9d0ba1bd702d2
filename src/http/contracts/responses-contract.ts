import { z } from "zod";
import { messagesOfResponses } from "../../service/responses/responses.js";
import type { GivenIdentity } from "../requests/request.js";
import { type AskedChat, type BodyForm, chatSettings, readChat } from "./chat-contract.js";

/*
 * `POST /v1/responses`: OpenAI's body. Only `input`, `instructions`, the ids of earlier responses, `user` and `memprefix` are read; the rest
 * goes upstream unmodified.
 */

/** OpenAI's path of responses. */
export const RESPONSES_PATH = "/v1/responses";

/** The body, for the OpenAPI document. */
export const responsesBody = z
  .looseObject({
    input: z
      .union([z.string(), z.array(z.unknown())])
      .describe("A text, or items. Memories go into the items of the user, in front of their text."),
    instructions: z.string().nullish(),
    previous_response_id: z.string().nullish().describe("`input` has only what is new since."),
    user: z.string().nullish().describe("OpenAI's end-user id. Names the user if nothing else does."),
    memprefix: chatSettings.nullish(),
  })
  .meta({ id: "ResponsesRequest", description: "OpenAI's request. Every field but `memprefix` goes upstream." });

const RESPONSES_FORM: BodyForm = {
  userField: "user",
  userIn: ({ user }) => user,
  isName: () => true,
  messagesIn: messagesOfResponses,
};

/** Reads a request's body and headers. Throws `InvalidRequestError` if `memprefix`, `user` or memprefix's headers are invalid. */
export function readResponses(given: unknown, headers: Pick<Headers, "get">, identity?: GivenIdentity): AskedChat {
  return readChat(given, headers, identity, RESPONSES_FORM);
}
