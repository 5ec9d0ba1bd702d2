import type { MessageLike } from "../base/call-types.js";
import type * as companions from "./companion-options.js";
import type { composeOptions } from "./compose-options.js";
import type { Given } from "./fields.js";

/* Types of the options that the schemas check; `null` counts as absent. `.ci/plain-types.ts` writes them out, so that the client needs no zod. */

/** All options except the messages, whose type is generic. */
export type ComposeFields = Given<typeof composeOptions>;

/** Options of `compose`: the fields of `POST /compose`. `query` or `messages` is required. */
export interface ComposeOptions<M extends MessageLike = MessageLike> extends Omit<ComposeFields, "messages"> {
  /** Plain chat history, ending with the question; without injected memories. */
  readonly messages?: readonly M[] | null | undefined;
}

/** Texts to add to the memory source. */
export type MemoriesOptions = Given<typeof companions.memoriesOptions>;
export type AddOptions = Given<typeof companions.addOptions>;

/** Requests whose cache the engine dropped. */
export type EvictOptions = Given<typeof companions.evictOptions>;

/** What the engine reported of a request. */
export type FeedbackOptions = Given<typeof companions.feedbackOptions>;

/** A memory to forget, by its id in its source. */
export type ForgetMemoryOptions = Given<typeof companions.forgetMemoryOptions>;

export type ForgetUserOptions = Given<typeof companions.forgetUserOptions>;
