import { z } from "zod";

/** A block's label in answers. */
export const label = z.int().meta({ description: "The block's label: `[12]` in the prompt." });
