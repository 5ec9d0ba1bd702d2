import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AlertNotSentError, postAlert, readAlertFile } from "../../src/cli/alerts.js";
import { InvalidRequestError } from "../../src/service/base/errors.js";
import { alertFile } from "../../src/service/usage/usage-alerts.js";

const RULE = { name: "sonnet-fell", measure: "cached_share", model: "sonnet", falls_by: 0.33 };

describe("the webhook of alerts", () => {
  const received: unknown[] = [];
  let statuses: number[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      received.push(JSON.parse(body));
      const status = statuses.shift() ?? 204;
      response.writeHead(status, status === 302 ? { location: "/elsewhere" } : {}).end();
    });
  });
  let url = "";
  beforeEach(async () => {
    received.length = 0;
    told.length = 0;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?secret=s3cret`;
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  const [rule] = alertFile.parse({ rules: [RULE] }).rules;
  const alert = () => {
    if (rule === undefined) throw new Error("no rule");
    return { rule, isFiring: true, since: 1_000, value: 0.4, reference: 0.8, at: 1_000 };
  };
  const told: string[] = [];
  const post = (waits: readonly number[] = [1, 1]) =>
    postAlert(url, alert(), new AbortController().signal, ({ message }) => told.push(message), waits);

  it("gets the alert as JSON", async () => {
    statuses = [];
    await post();
    expect(received).toEqual([
      {
        name: "sonnet-fell",
        state: "firing",
        measure: "cached_share",
        tenant: "default",
        model: "sonnet",
        engine: null,
        value: 0.4,
        reference: 0.8,
        at: 1_000,
      },
    ]);
  });

  it("gets it again where it failed, and no more once it is given up", async () => {
    statuses = [500, 503];
    await post();
    expect(received).toHaveLength(3);
    expect(told).toEqual([500, 503].map((status) => `an alert could not be posted: it was answered ${status}`));
    statuses = [500, 500, 404];
    const failed = await post().catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(AlertNotSentError);
    expect(String(failed)).toContain("404");
    expect(String(failed)).not.toContain("s3cret");
    expect(received).toHaveLength(6);
  });

  it("that is not there is told by the network's code", async () => {
    await new Promise((closed) => server.close(closed));
    await expect(post([])).rejects.toThrow("an alert could not be posted: ECONNREFUSED");
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });

  it("is not followed elsewhere", async () => {
    statuses = [302];
    await expect(post([])).rejects.toThrow(AlertNotSentError);
    expect(received).toHaveLength(1);
  });
});

describe("MEMPREFIX_ALERTS", () => {
  let directory = "";
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "memprefix-alerts-"));
  });
  afterEach(() => rm(directory, { recursive: true }));
  const file = async (text: string) => {
    const path = join(directory, "alerts.json");
    await writeFile(path, text);
    return readAlertFile({ alerts: path });
  };

  it("names a file of rules", async () => {
    const { rules, webhook } = await file(JSON.stringify({ webhook: "https://hooks.example.org/x", rules: [RULE] }));
    expect(webhook).toBe("https://hooks.example.org/x");
    expect(rules).toMatchObject([{ ...RULE, tenant: "default", within_minutes: 60, min_prompts: 20 }]);
    expect(readAlertFile({ alerts: undefined })).toEqual({ rules: [] });
  });

  it.each([
    ["that is not JSON", "{", /is not JSON/],
    [
      "with a field that there is not",
      JSON.stringify({ rules: [{ ...RULE, model_name: "x" }] }),
      /rules\[0\].*model_name/,
    ],
    [
      "with a webhook that is no address",
      JSON.stringify({ webhook: "ftp://x", rules: [] }),
      /webhook: must be an http/,
    ],
  ])("names no file %s", async (_what, text, message) => {
    await expect(file(text)).rejects.toThrow(InvalidRequestError);
    await expect(file(text)).rejects.toThrow(message);
  });

  it("names a file that is there", () => {
    expect(() => readAlertFile({ alerts: join(directory, "none.json") })).toThrow(/cannot be read/);
  });
});
