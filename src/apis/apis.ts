/*
 * apis: the request APIs of engines. Each folder is one API with the same files: `history.ts` reads the history and tools of a body,
 * `sections.ts` puts a composed prompt into it, `answer.ts` reads an answer or its stream, `error.ts` writes an error.
 * Enters: bodies and answers as parsed JSON. Leaves: chat messages, a body for the same API, usage and text. No API becomes another.
 */

import type { Api, ApiName } from "./api/api.js";
import { chat } from "./chat/index.js";
import { messages } from "./messages/index.js";
import { responses } from "./responses/index.js";

export const APIS: Readonly<Record<ApiName, Api>> = { chat, messages, responses };
