import { z } from "zod";

/*
 * The fields of `DepthSettings`, in requests and settings.
 */

export const firstBlocks = z.int().min(1, "must be at least 1").max(1_000, "must be at most 1000");
export const growth = z.number().gt(1, "must be more than 1").max(100, "must be at most 100");
export const entropyNats = z.number().min(0, "must not be negative").max(20, "must be at most 20");
export const maxProbes = z.int().min(1, "must be at least 1").max(8, "must be at most 8");
export const timeLimitMs = z.int().min(1, "must be at least 1").max(60_000, "must be at most 60000");
