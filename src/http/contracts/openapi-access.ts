import { z } from "zod";
import { problemSchema } from "../problems/problem.js";

/*
 * What the OpenAPI document says of keys and limits, the same of every route.
 */

/** Two ways to show a key. */
export const SECURITY_SCHEMES = {
  bearer: {
    type: "http",
    scheme: "bearer",
    description: "`authorization: Bearer mst_…`. Not needed while there are no keys.",
  },
  apiKey: { type: "apiKey", in: "header", name: "x-api-key", description: "The same key in a header of its own." },
} as const;

/** Either of them will do. */
export const SECURITY = [{ bearer: [] }, { apiKey: [] }];

const retryAfter = z.object({ "retry-after": z.string().meta({ description: "Seconds" }) });
const challenge = z.object({ "www-authenticate": z.string() });

/** How requests are turned away, in the form in which a route's clients read problems. */
export function refusalsWith<S extends z.ZodType>(mediaType: string, schema: S) {
  const content = { [mediaType]: { schema } };
  return {
    401: { description: "Keys are in use, and the request shows none that holds", headers: challenge, content },
    408: { description: "The body came too slowly; the detail names the limit", headers: retryAfter, content },
    429: {
      description: "Beyond a limit or share of the key's, the address's or the user's; the detail names it",
      headers: retryAfter,
      content,
    },
    503: { description: "Too much is in work already, or the service is stopping", headers: retryAfter, content },
  };
}

/** As problems. */
export const REFUSALS = refusalsWith("application/problem+json", problemSchema);
