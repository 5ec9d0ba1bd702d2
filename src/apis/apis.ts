/*
 * apis: the request APIs of engines, one folder each with the same files. No API becomes another.
 * Enters: bodies and answers as parsed JSON. Leaves: chat messages, a body for the same API, usage, text and errors.
 */

import type { Api, ApiName } from "./api/api.js";
import { chat } from "./chat/index.js";
import { messages } from "./messages/index.js";
import { responses } from "./responses/index.js";

export const APIS: Readonly<Record<ApiName, Api>> = { chat, messages, responses };
