import { z } from "zod";
import { DEFAULT_TENANT } from "../base/tenant.js";
import { engine } from "../fields/fields.js";
import { modelName } from "../fields/usage-fields.js";

/** What a rule watches. */
const ALERT_MEASURES = ["cached_share", "missed_tokens", "first_token_p95_ms"] as const;

const share = z.number().gt(0).lt(1);

const rule = z
  .strictObject({
    name: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, "must be 1 to 64 letters, digits, dots, dashes or underscores"),
    measure: z.enum(ALERT_MEASURES),
    tenant: z.string().min(1).default(DEFAULT_TENANT.name),
    model: modelName.optional(),
    engine: engine.optional(),
    within_minutes: z.int().min(15).max(720).multipleOf(15, "must be a multiple of 15").default(60),
    min_prompts: z.int().min(1).max(1_000_000).default(20),
    falls_by: share.optional(),
    rises_by: z.number().gt(0).max(1_000).optional(),
    below: z.number().min(0).optional(),
    above: z.number().min(0).optional(),
  })
  .refine(
    (given) =>
      [given.falls_by, given.rises_by, given.below, given.above].filter((limit) => limit !== undefined).length === 1,
    "must have exactly one of falls_by, rises_by, below and above",
  );

/** The file of `MEMSTEM_ALERTS`. */
export const alertFile = z.strictObject({
  webhook: z.url({ protocol: /^https?$/, error: "must be an http or https address" }).optional(),
  rules: z
    .array(rule)
    .max(100)
    .refine((rules) => new Set(rules.map(({ name }) => name)).size === rules.length, "must have names that differ"),
});

/** When an alert fires. */
export type AlertRule = z.output<typeof rule>;
/** The rules, and where their alerts are posted. */
export type AlertFile = z.output<typeof alertFile>;

/** Whether a rule's condition holds; null: too little is known. `reference`: the same measure in the window before. */
export function isMet(rule: AlertRule, value: number | null, reference: number | null): boolean | null {
  if (value === null) return null;
  if (rule.below !== undefined) return value < rule.below;
  if (rule.above !== undefined) return value > rule.above;
  if (reference === null) return null;
  if (rule.falls_by !== undefined) return value <= reference * (1 - rule.falls_by);
  return value >= reference * (1 + (rule.rises_by ?? 0)) && reference > 0;
}
