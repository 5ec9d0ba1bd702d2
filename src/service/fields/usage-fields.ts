import { z } from "zod";
import { USAGE_CAUSES, USAGE_NOTE_KINDS, USAGE_WINDOWS } from "../../core/index.js";

/*
 * The fields of `DepthSettings`, in requests and settings.
 */

export const firstBlocks = z.int().min(1, "must be at least 1").max(1_000, "must be at most 1000");
export const growth = z.number().gt(1, "must be more than 1").max(100, "must be at most 100");
export const entropyNats = z.number().min(0, "must not be negative").max(20, "must be at most 20");
export const maxProbes = z.int().min(1, "must be at least 1").max(8, "must be at most 8");
export const timeLimitMs = z.int().min(1, "must be at least 1").max(60_000, "must be at most 60000");

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
