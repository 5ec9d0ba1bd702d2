import type { Api } from "../api/api.js";
import { readOpenAiUsage } from "../api/usage.js";
import { ResponsesAnswer } from "./answer.js";
import { error } from "./error.js";
import { history } from "./history.js";
import { warmUp, withPrompt } from "./sections.js";

/** OpenAI's Responses API. Source: https://platform.openai.com/docs/api-reference/responses/create */
export const responses: Api = {
  name: "responses",
  path: "responses",
  historyField: "input",
  userField: "user",
  user: ({ user }) => user,
  history,
  toolFields: ["tools"],
  withPrompt,
  warmUp,
  answerReader: () => new ResponsesAnswer(),
  readUsage: readOpenAiUsage,
  error,
};
