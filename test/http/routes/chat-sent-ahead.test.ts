import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { readSettings } from "../../../src/cli/settings.js";
import { StoreUnavailableError } from "../../../src/service/base/errors.js";
import { StoredApiKeys } from "../../../src/store/keys.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { openInMemory } from "../../../src/store/sqlite/open.js";
import { openService } from "../../service/compose/service-fixture.js";
import { beforeComposes } from "../../service/shared-database.js";
import { sendWith } from "../guards/callers.js";
import { type StartedApp, startApp } from "../server/started-app.js";
import { openAiEngine } from "./openai-engine.js";

/** A chat's prompt is on its way to the engine while it is being stored, and no client sees an answer that was not. */
const engine = openAiEngine();
const QUESTION = { role: "user", content: "Which tea?" };
const memories = [{ id: "m-1", memory: "Ada drinks green tea" }];
/** After a while, so that the engine has a prompt that was sent ahead. */
const full = async () => {
  await new Promise((later) => setTimeout(later, 50));
  throw new StoreUnavailableError("full");
};
let app: StartedApp;
let storing: () => Promise<unknown>;
const faults: unknown[] = [];

beforeEach(async () => {
  storing = async () => {};
  const database = openInMemory();
  const memprefix = openService({ store: beforeComposes(storeIn(database), () => storing()) });
  const settings = readSettings({ MEMPREFIX_UPSTREAM_URL: engine.url });
  const assembled = { memprefix, keys: new StoredApiKeys(database) };
  app = await startApp(settings, null, { log: [], faults }, assembled, { composeTimeoutMs: 300 });
});
afterEach(async () => {
  await app.close();
  faults.length = 0;
});

/** Prompts are stored when the function that it returns is called. */
function storedLater(): () => void {
  let stored = () => {};
  const later = new Promise<void>((resolve) => {
    stored = resolve;
  });
  storing = () => later;
  return stored;
}

const chat = (own: object = {}, user = "ada") =>
  sendWith(app, {}, "POST", "/v1/chat/completions", {
    ...{ model: "stub-1", messages: [QUESTION], ...own },
    memprefix: { user_id: user, memories },
  });
/** Of each prompt that the engine got, whether it was composed. */
const composed = () => engine.requests.map(({ raw }) => raw.includes("green tea"));

it("is computed while it is being stored, and answered once it is stored", async () => {
  const stored = storedLater();
  let isAnswered = false;
  const answering = chat().then((answer) => {
    isAnswered = true;
    return answer;
  });
  await vi.waitFor(() => expect(engine.requests).toHaveLength(1));
  expect(composed()).toEqual([true]);
  await new Promise((later) => setTimeout(later, 50));
  expect(isAnswered).toBe(false);
  stored();
  const answer = await answering;
  expect(answer.headers.get("x-memprefix-request-id")).toBe("generated-1");
  expect(engine.requests).toHaveLength(1);
});

it("that cannot be stored is given up, and the client's own messages are answered; the next ones are stored first", async () => {
  const isGone = vi.fn();
  engine.behave((request, response) => {
    // The engine takes its time, so a prompt that is given up breaks its connection off.
    request.abandoned.then(isGone).catch(() => undefined);
    setTimeout(() => response.end("{}"), request.raw.includes("green tea") ? 10_000 : 0).unref();
  });
  storing = full;
  for (const user of ["ada", "bo", "ada"]) {
    const answer = await chat({}, user);
    expect(answer.headers.get("x-memprefix-not-composed")).toBe("store_full");
    expect(answer.text).toBe("{}");
  }
  await vi.waitFor(() => expect(isGone).toHaveBeenCalledTimes(1));
  expect(composed()).toEqual([true, false, false, false]);
  storing = async () => {};
  engine.behave((_request, response) => void response.end("{}"));
  await chat();
  expect(composed()[4]).toBe(true);
  storing = full;
  await chat();
  expect(composed().slice(5)).toEqual([true, false]);
});

it("whose store hangs is given up after the time-out", async () => {
  const stored = storedLater();
  const answer = await chat();
  expect(answer.headers.get("x-memprefix-not-composed")).toBe("timeout");
  expect(composed()).toEqual([true, false]);
  stored();
  await vi.waitFor(() => expect(app.memprefix.load.jobs).toBe(0));
});

it.each([{ conversation: "conv_1" }, { background: true }])(
  "with effects at the engine is stored first: %j",
  async (own) => {
    storing = full;
    await chat(own);
    expect(composed()).toEqual([false]);
  },
);
