import { z } from "zod";
import { USAGE_CAUSES, USAGE_NOTE_KINDS, USAGE_WINDOWS } from "../../core/index.js";

/*
 * Fields of the usage views, as every entry point checks them.
 */

export const usageWindow = z.enum(USAGE_WINDOWS);
export const usageCause = z.enum(USAGE_CAUSES);
export const usageNoteKind = z.enum(USAGE_NOTE_KINDS);
/** A model's name as its client wrote it. Longer ones are kept as `other`. */
export const modelName = z.string().min(1).max(200);
/** What a caller may note by itself; the others are memstem's own. */
export const givenNoteKind = z.enum(["deploy", "engine_restart"]);
export const noteLabel = z.string().min(1).max(200);
