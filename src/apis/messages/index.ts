import { record } from "../../core/text/json.js";
import type { Api } from "../api/api.js";
import { MessageAnswer, readMessagesUsage } from "./answer.js";
import { error } from "./error.js";
import { history } from "./history.js";
import { warmUp, withPrompt } from "./sections.js";

/** Anthropic's Messages API. Source: https://platform.claude.com/docs/en/api/messages */
export const messages: Api = {
  name: "messages",
  path: "messages",
  historyField: "messages",
  userField: "metadata.user_id",
  user: ({ metadata }) => record(metadata)["user_id"],
  history,
  toolFields: ["tools"],
  withPrompt,
  warmUp,
  answerReader: () => new MessageAnswer(),
  readUsage: readMessagesUsage,
  error,
};
