import type { Api } from "../api/api.js";
import { ChatAnswer } from "./answer.js";
import { error } from "./error.js";
import { history } from "./history.js";
import { warmUp, withPrompt } from "./sections.js";

/** OpenAI's chat completions. Source: https://platform.openai.com/docs/api-reference/chat/create */
export const chat: Api = {
  name: "chat",
  path: "chat/completions",
  historyField: "messages",
  userField: "user",
  user: ({ user }) => user,
  history,
  // OpenAI's two forms of tools.
  toolFields: ["tools", "functions"],
  withPrompt,
  warmUp,
  answerReader: () => new ChatAnswer(),
  error,
};
