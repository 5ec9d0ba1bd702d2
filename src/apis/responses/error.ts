export { error } from "../chat/error.js";
