import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { z } from "zod";
import { SHUTDOWN_MS } from "../../src/cli/serve.js";
import { SETTING_NAMES, variableOf } from "../../src/cli/setting-list.js";
import { readSettings } from "../../src/cli/settings.js";

/** Where Helm itself is; undefined: the chart is rendered by this test alone. */
const HELM = process.env["HELM"];
const CHART = resolve(import.meta.dirname, "../../examples/helm");
const read = (name: string) => readFileSync(join(CHART, name), "utf8");
const values = z.record(z.string(), z.unknown());
const DEFAULTS = values.parse(parse(read("values.yaml")));

/** Renders a template as Helm does. Of Helm's language it has what the chart uses, and refuses everything else. */
function rendered(template: string, given: Readonly<Record<string, unknown>>, release = "mem"): string {
  const value = (path: string, loop: Readonly<Record<string, unknown>>): unknown => {
    if (path === ".Release.Name") return release;
    const name = /^\.Values\.(\w+)$/.exec(path)?.[1];
    const found = name === undefined ? loop[path] : given[name];
    if (found === undefined) throw new Error(`${path} has no value`);
    return found;
  };
  const lines = (text: string, loop: Readonly<Record<string, unknown>> = {}): string =>
    text.replaceAll(/\{\{-? *(.*?) *\}\}/g, (_, action: string) => {
      const [path = "", ...filters] = action.replace(/^toYaml /, "").split(" | ");
      const found = value(path, loop);
      if (filters.join() === "quote") return JSON.stringify(String(found));
      const indent = /^nindent (\d+)$/.exec(filters.join())?.[1];
      if (indent !== undefined && action.startsWith("toYaml "))
        return stringify(found)
          .trimEnd()
          .replaceAll(/^/gm, " ".repeat(Number(indent)))
          .replace(/^/, "\n");
      if (filters.length > 0 || action.startsWith("toYaml ")) throw new Error(`${action} is not known here`);
      return String(found);
    });
  const loops = /^ *\{\{- range \$name, \$value := \.Values\.(\w+) \}\}\n([\s\S]*?)^ *\{\{- end \}\}\n/gm;
  const unrolled = template.replaceAll(loops, (_, name: string, body: string) =>
    Object.entries(given[name] as object)
      .toSorted()
      .map(([$name, $value]) => lines(body, { $name, $value }))
      .join(""),
  );
  return lines(unrolled);
}

function isMap(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function objects(
  given: Readonly<Record<string, unknown>> = {},
  release?: string,
): Readonly<Record<string, Record<string, unknown>>> {
  // Helm merges maps, and replaces all else.
  const merged = Object.entries({ ...DEFAULTS, ...given }).map(([name, value]) => {
    const before = DEFAULTS[name];
    return [name, isMap(before) && isMap(value) ? { ...before, ...value } : value];
  });
  const texts = readdirSync(join(CHART, "templates")).map((name) =>
    rendered(read(join("templates", name)), Object.fromEntries(merged), release),
  );
  return Object.fromEntries(texts.map((text) => [String((parse(text) as { kind: string }).kind), parse(text)]));
}

describe("the Helm chart", () => {
  it("is of the package's version", () => {
    const { version } = z
      .object({ version: z.string() })
      .parse(JSON.parse(readFileSync(join(CHART, "../../package.json"), "utf8")));
    expect(parse(read("Chart.yaml"))).toMatchObject({ apiVersion: "v2", name: "memprefix", appVersion: version });
    expect(DEFAULTS["image"]).toBe(`memprefix:${version}`);
  });

  it("is not given its Service's variables as settings where it is installed as its README says", () => {
    const [, name = ""] = /^helm install (\S+)/m.exec(read("README.md")) ?? [];
    const { Deployment, Service } = objects({}, name);
    expect(Service).toMatchObject({ metadata: { name: "memprefix" } });
    // As the kubelet writes them of a Service by this name.
    const links = { MEMPREFIX_PORT: "tcp://10.96.0.1:4600", MEMPREFIX_SERVICE_HOST: "10.96.0.1" };
    expect(() => readSettings(links)).toThrow(/MEMPREFIX_PORT/);
    expect(Deployment).toMatchObject({ spec: { template: { spec: { enableServiceLinks: false } } } });
  });

  it("waits longer than a service takes to stop", () => {
    const { spec } = objects()["Deployment"] as {
      spec: { template: { spec: { terminationGracePeriodSeconds: number } } };
    };
    expect(spec.template.spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(SHUTDOWN_MS);
  });

  it("takes secrets from a Secret, and has none; its settings are settings, as texts, whatever they say", () => {
    const settings = {
      MEMPREFIX_TOP_K: 20,
      MEMPREFIX_IDENTITY: 'user=header:x-user: # "a"',
      MEMPREFIX_WARM_UP: true,
    };
    const { Deployment } = objects({ settings, secret: "keys" });
    expect(Deployment).toMatchObject({
      spec: {
        template: {
          spec: {
            containers: [
              {
                env: [
                  { name: "MEMPREFIX_ENGINE_FAMILY", value: "vllm" },
                  { name: "MEMPREFIX_IDENTITY", value: 'user=header:x-user: # "a"' },
                  { name: "MEMPREFIX_SOURCE", value: "none" },
                  { name: "MEMPREFIX_TOP_K", value: "20" },
                  { name: "MEMPREFIX_WARM_UP", value: "true" },
                ],
                envFrom: [{ secretRef: { name: "keys" } }],
              },
            ],
          },
        },
      },
    });
    const known = new Set(SETTING_NAMES.map(variableOf));
    const named = [...read("values.yaml").matchAll(/\bMEMPREFIX_\w+/g)].map(([name]) => name);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
    expect(Object.keys(DEFAULTS["settings"] as object).filter((name) => /KEY|URL|TOKEN/.test(name))).toEqual([]);
    expect(() => readSettings(DEFAULTS["settings"] as Record<string, string>)).not.toThrow();
  });

  it.skipIf(HELM === undefined).each([
    ["the defaults", {}],
    [
      "values of one's own",
      {
        secret: "keys",
        replicas: 3,
        settings: { MEMPREFIX_TOP_K: 20, MEMPREFIX_IDENTITY: 'user=header:x-user: # "a"' },
        callers: [{ namespaceSelector: { matchLabels: { team: "agents" } } }],
      },
    ],
  ])(
    `is linted and rendered by Helm as here, with %s${HELM === undefined ? " (skipped: HELM names no Helm)" : ""}`,
    (_, given) => {
      const input = stringify(given);
      const helm = (...args: readonly string[]) =>
        execFileSync(HELM ?? "", [...args, "--values", "-"], { input, encoding: "utf8" });
      expect(helm("lint", "--strict", CHART)).toContain("0 chart(s) failed");
      const made = parseAllDocuments(helm("template", "mem", CHART)).map((document) => document.toJS() as object);
      expect(Object.fromEntries(made.map((object) => [(object as { kind: string }).kind, object]))).toEqual(
        objects(given),
      );
    },
  );
});
