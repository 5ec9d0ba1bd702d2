import { z } from "zod";

/*
 * What operators read: `GET /healthz`, `GET /livez` and `GET /metrics`.
 */

export const health = z
  .object({
    status: z.enum(["ok", "stopping"]),
    version: z.string(),
    source: z.string().nullable().meta({ description: "The memory source's name; null: none is configured." }),
  })
  .meta({ id: "Health" });

export const metricsText = z
  .string()
  .meta({ description: "Prometheus text format. Labels are routes, codes and counts; never ids or text." });
