import { z } from "zod";
import { PARTS } from "../../service/base/memprefix-observer.js";

/*
 * What operators read: `GET /healthz`, `GET /livez` and `GET /metrics`.
 */

export const health = z
  .object({
    status: z.enum(["ok", "degraded", "stopping"]),
    version: z.string(),
    source: z.string().nullable().describe("The memory source's name; null: none is configured."),
  })
  .extend({
    degraded: z
      .array(
        z.object({
          part: z.enum(PARTS),
          reason: z.string(),
          since: z.int().describe("Milliseconds since the epoch."),
        }),
      )
      .optional()
      .describe("What failed when it was last asked. Absent: nothing. The log has what it said itself."),
  })
  .meta({ id: "Health" });

export const metricsText = z
  .string()
  .describe("Prometheus text format. Labels are routes, codes and counts; never ids or text.");
