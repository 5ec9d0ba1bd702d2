import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { z } from "zod";
import { SHUTDOWN_MS } from "../../src/cli/serve.js";
import { SETTING_NAMES, variableOf } from "../../src/cli/setting-list.js";
import { readSettings } from "../../src/cli/settings.js";

/** Where Helm itself is; undefined: the chart is read as it stands. */
const HELM = process.env["HELM"];
const CHART = resolve(import.meta.dirname, "../../examples/helm");
const read = (name: string) => readFileSync(join(CHART, name), "utf8");
const DEFAULTS = z
  .object({ image: z.string(), settings: z.record(z.string(), z.string()) })
  .loose()
  .parse(parse(read("values.yaml")));

/** A template's object, with a text in place of each value, and what it repeats once. */
function objectOf(template: string): unknown {
  const once = read(`templates/${template}.yaml`).replaceAll(/^ *\{\{- (?:range|end)\b.*\n/gm, "");
  return parse(once.replaceAll(/\{\{-? *(.*?) *\}\}/g, (_, action: string) => JSON.stringify(action)));
}
const pod = z
  .object({ spec: z.object({ template: z.object({ spec: z.looseObject({}) }) }) })
  .parse(objectOf("deployment")).spec.template.spec;

describe("the Helm chart", () => {
  it("is of the package's version", () => {
    const { version } = z
      .object({ version: z.string() })
      .parse(JSON.parse(readFileSync(join(CHART, "../../package.json"), "utf8")));
    expect(parse(read("Chart.yaml"))).toMatchObject({ apiVersion: "v2", name: "memprefix", appVersion: version });
    expect(DEFAULTS.image).toBe(`memprefix:${version}`);
  });

  it("is not given its Service's variables as settings where it is installed as its README says", () => {
    expect(read("README.md")).toMatch(/^helm install memprefix /m);
    expect(objectOf("service")).toMatchObject({ kind: "Service", metadata: { name: ".Release.Name" } });
    // As the kubelet writes them of a Service by this name.
    const links = { MEMPREFIX_PORT: "tcp://10.96.0.1:4600", MEMPREFIX_SERVICE_HOST: "10.96.0.1" };
    expect(() => readSettings(links)).toThrow(/MEMPREFIX_PORT/);
    expect(pod).toMatchObject({ enableServiceLinks: false });
  });

  it("has a policy for who may call it", () => {
    expect(objectOf("network-policy")).toMatchObject({ kind: "NetworkPolicy", spec: { policyTypes: ["Ingress"] } });
  });

  it("waits longer than a service takes to stop", () => {
    expect(Number(pod["terminationGracePeriodSeconds"]) * 1_000).toBeGreaterThan(SHUTDOWN_MS);
  });

  it("takes secrets from a Secret, and has none; its settings are settings, as texts, whatever they say", () => {
    const env = [{ name: "$name", value: "$value | quote" }];
    expect(pod).toMatchObject({ containers: [{ env, envFrom: [{ secretRef: { name: ".Values.secret" } }] }] });
    const known = new Set(SETTING_NAMES.map(variableOf));
    const named = [...read("values.yaml").matchAll(/\bMEMPREFIX_\w+/g)].map(([name]) => name);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
    expect(Object.keys(DEFAULTS.settings).filter((name) => /KEY|URL|TOKEN/.test(name))).toEqual([]);
    expect(() => readSettings(DEFAULTS.settings)).not.toThrow();
  });

  it.skipIf(HELM === undefined)(`is linted and rendered by Helm${HELM ? "" : " (skipped: HELM names no Helm)"}`, () => {
    const settings = { MEMPREFIX_TOP_K: 20, MEMPREFIX_IDENTITY: 'user=header:x-user: # "a"' };
    const input = stringify({ settings, secret: "keys" });
    const helm = (...args: readonly string[]) =>
      execFileSync(HELM ?? "", [...args, "--values", "-"], { input, encoding: "utf8" });
    expect(helm("lint", "--strict", CHART)).toContain("0 chart(s) failed");
    const made = parseAllDocuments(helm("template", "mem", CHART)).map((document) => document.toJS() as object);
    const env = Object.entries({ ...DEFAULTS.settings, ...settings }).map(([name, value]) => ({
      name,
      value: `${value}`,
    }));
    const container = { env: expect.arrayContaining(env), envFrom: [{ secretRef: { name: "keys" } }] };
    const deployment = made.find((object) => "kind" in object && object.kind === "Deployment");
    expect(deployment).toMatchObject({ spec: { template: { spec: { containers: [container] } } } });
  });
});
