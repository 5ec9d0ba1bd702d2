/** Responses have OpenAI's error object. */
export { error } from "../chat/error.js";
