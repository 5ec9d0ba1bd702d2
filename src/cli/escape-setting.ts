import { z } from "zod";
import { MAX_MARKERS, markerProblem } from "../core/index.js";

const list = z
  .array(
    z.string("must be an array of texts").superRefine((marker, context) => {
      const problem = markerProblem(marker);
      if (problem !== null) context.addIssue({ code: "custom", message: `${JSON.stringify(marker)} ${problem}` });
    }),
    "must be an array of texts",
  )
  .max(MAX_MARKERS, `must have at most ${MAX_MARKERS} texts`)
  .transform((markers): readonly string[] => [...new Set(markers)]);

/** Markers as they are configured: a JSON array of texts. */
export const escapedMarkers = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue({ code: "custom", message: "must be a JSON array of texts" });
      return z.NEVER;
    }
  })
  .pipe(list);
