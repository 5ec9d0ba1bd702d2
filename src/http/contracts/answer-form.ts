import { z } from "zod";

const description = "Given, with any value or none: the answer's JSON is indented.";

/** What every query may say about the answer's form. Routes with a strict query take it beside their own parameters. */
export const answerForm = {
  pretty: z
    .string()
    .optional()
    .meta({ description, param: { allowEmptyValue: true } }),
};

/** The same for the document, of routes that have no query of their own. */
export const PRETTY_PARAMETER = {
  name: "pretty",
  in: "query",
  required: false,
  allowEmptyValue: true,
  description,
  schema: { type: "string" },
} as const;
