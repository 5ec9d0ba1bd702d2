/*
 * The wire contracts: what JSON the HTTP surface takes and gives, as zod schemas, in snake_case. Requests are strict, except where they
 * hold another system's data (Mem0's memories, OpenAI's bodies).
 * Enters: JSON that was parsed. Leaves: the service's camelCase types (`read…`), and their JSON (`write…`).
 * Field rules are the service's (`service/fields`); here fields get their wire names and descriptions.
 * `openapi-*.ts`, `operations.ts` and `examples.ts` describe the same routes in the OpenAPI document.
 */

export { composeBodyWithNulls, composeResult, readCompose, writeCompose } from "./compose-contract.js";
export {
  evictBody,
  evictResult,
  feedbackBody,
  feedbackResult,
  writeEviction,
  writeFeedback,
} from "./engine-report-contract.js";
export { health, metricsText } from "./health-contract.js";
export {
  addBody,
  addResult,
  forgetMemoryResult,
  memoryPath,
  memoryQuery,
  writeForgetting,
} from "./memory-contract.js";
export {
  forgetUserResult,
  indexQuery,
  indexResult,
  userIndexQuery,
  userPath,
  userQuery,
  writeIndex,
} from "./user-contract.js";
