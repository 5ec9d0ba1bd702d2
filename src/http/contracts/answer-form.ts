import { z } from "zod";

/** What any query may say of the answer's form, whatever else it takes. */
export const answerForm = {
  pretty: z.string().optional().meta({ description: "Given, with any value or none: the JSON is indented." }),
};
