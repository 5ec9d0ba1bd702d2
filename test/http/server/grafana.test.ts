import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ROOT } from "../../docs/pages.js";
import { servedApp } from "./served-app.js";

const place = z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() });
const dashboard = z
  .object({
    panels: z.array(
      z.object({
        id: z.int(),
        title: z.string(),
        gridPos: place,
        targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).default([]),
      }),
    ),
    annotations: z.object({ list: z.array(z.object({ expr: z.string() })) }),
  })
  .parse(JSON.parse(readFileSync(join(ROOT, "examples/grafana-dashboard.json"), "utf8")));

const targets = dashboard.panels.flatMap((panel) => panel.targets);
const expressions = [...targets, ...dashboard.annotations.list].map(({ expr }) => expr);

/** The names of the metrics of an expression, as they are served. */
function namesIn(expr: string): readonly string[] {
  return [...expr.matchAll(/\b(?:memprefix|process|nodejs)_\w+/g)].map(([name]) => name);
}

/** A metric by the name of one of its series. */
function metricOf(name: string, known: ReadonlySet<string>): string {
  return known.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, "");
}

describe("examples/grafana-dashboard.json", () => {
  const app = servedApp();
  const served = async () => {
    const { text } = await app.send("GET", "/metrics");
    return new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  };

  it("asks for metrics that are served, counters by their rate and histograms by their buckets", async () => {
    const types = await served();
    const names = new Set(types.keys());
    const wrong = expressions.flatMap((expr) =>
      namesIn(expr).flatMap((name) => {
        const metric = metricOf(name, names);
        const type = types.get(metric);
        if (type === undefined) return [`${name} is not served`];
        if (type === "counter" && !new RegExp(`rate\\(${name}\\{`).test(expr)) return [`${name} is a counter`];
        if (type === "histogram" && metric === name) return [`${name} is a histogram`];
        if (name.endsWith("_bucket") && !/histogram_quantile\([\d.]+, sum by \(le[,)]/.test(expr))
          return [`${name} without le`];
        return [];
      }),
    );
    expect(expressions.length).toBeGreaterThan(30);
    expect(wrong).toEqual([]);
  });

  it("shows every metric of memprefix's own", async () => {
    const types = await served();
    const names = new Set(types.keys());
    const shown = new Set(expressions.flatMap(namesIn).map((name) => metricOf(name, names)));
    expect([...names].filter((name) => name.startsWith("memprefix_") && !shown.has(name))).toEqual([]);
  });

  it("names labels that the metrics have", () => {
    const source = readFileSync(join(ROOT, "src/http/server/metrics.ts"), "utf8");
    const labelled = targets.flatMap(({ expr, legendFormat }) => {
      const grouped =
        /\bby \(([^)]*)\)/
          .exec(expr)?.[1]
          ?.split(", ")
          .filter((label) => label !== "le") ?? [];
      const legend = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      expect([expr, legend]).toEqual([expr, grouped]);
      const [name = ""] = namesIn(expr);
      // The first list of its declaration.
      const declared = new RegExp(`"${name.replace(/_bucket$/, "")}"[^[]*\\[([^\\]]*)\\]`).exec(source)?.[1] ?? "";
      return grouped.filter((label) => !declared.includes(`"${label}"`)).map((label) => `${name}: ${label}`);
    });
    expect(labelled).toEqual([]);
  });
});
