import { z } from "zod";
import type { ChatMessage } from "../../core/index.js";
import * as field from "../../service/fields/fields.js";

/*
 * Chat messages, in requests and in answers: the union of OpenAI's message types. Fields that are not named here pass through unmodified.
 */

const contentPart = z
  .looseObject({ type: z.string(), text: z.string().optional() })
  .meta({ description: "One part of the content: text, an image, audio, a file. Only the text of parts is read." });

const toolCall = z.looseObject({
  id: z.string(),
  type: z.string().meta({ description: "`function` or `custom`." }),
  function: z
    .looseObject({ name: z.string(), arguments: z.string().meta({ description: "JSON, as the model wrote it." }) })
    .optional(),
});

/** A chat message, for the OpenAPI document and for answers. */
export const message = z
  .looseObject({
    role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
    content: z.union([z.string(), z.array(contentPart), z.null()]).optional(),
    name: z.string().nullish().meta({ description: "Tells participants of one role apart; of `function`: which one." }),
    tool_calls: z.array(toolCall).nullish().meta({ description: "Calls that the assistant asks for." }),
    tool_call_id: z.string().nullish().meta({ description: "Of `tool`: the call that this is the result of." }),
  })
  .meta({ id: "Message", description: "A chat message in OpenAI's format. Further fields pass through unmodified." });

/** The JSON of a message. */
export type WireMessage = z.input<typeof message>;

/** Messages as requests give them: checked by the service's rules, described as {@link message}. */
export const givenMessages = field.messages.meta({ items: { $ref: "#/components/schemas/Message" } });

/** Messages for an answer. They were read by the service's rules, which know the same roles. */
export function writeMessages(messages: readonly ChatMessage[]): WireMessage[] {
  return messages as WireMessage[];
}
