import { describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import {
  NOTHING_SENT,
  RememberedResponses,
  type ResponseKey,
} from "../../../src/service/responses/remembered-responses.js";
import { DeletionWatch } from "../../../src/service/scopes/working-scopes.js";

const tenant = {};
const key = (id: string, of: object = tenant): ResponseKey => ({
  tenant: of,
  userId: "ada" as UserId,
  agentId: null,
  id,
});
const watching = (isDeleted: boolean) =>
  new DeletionWatch(
    { deletionsOf: async () => ({ users: isDeleted ? 1 : 0, memories: 0 }) },
    "default",
    "ada" as UserId,
    { users: 0, memories: 0 },
  );
const watch = watching(false);
const response = (text: string, previous: string | null, deleted = watch) => ({
  conversationId: null,
  previous: previous === null ? null : key(previous),
  messages: [{ role: "user", content: text }],
  isHeld: false,
  sent: NOTHING_SENT,
  watch: deleted,
});
const saidIn = async (remembered: RememberedResponses, id: string) =>
  (await remembered.of(key(id)))?.history?.map(({ content }) => content) ?? null;

describe("remembered responses", () => {
  it("have everything that led to them, once for each that continues one", async () => {
    const remembered = new RememberedResponses();
    remembered.set(key("1"), response("a", null));
    remembered.set(key("2"), response("b", "1"));
    remembered.set(key("3"), response("c", "1"));
    expect(await saidIn(remembered, "2")).toEqual(["a", "b"]);
    expect(await saidIn(remembered, "3")).toEqual(["a", "c"]);
    expect(await remembered.of(key("2", {}))).toBeNull();
  });

  it("are bounded in number and size; one whose beginning is gone has no history", async () => {
    const few = new RememberedResponses(2);
    for (const [id, before] of [
      ["1", null],
      ["2", "1"],
      ["3", "2"],
    ] as const)
      few.set(key(id), response(id, before));
    expect(await few.of(key("1"))).toBeNull();
    expect(await few.of(key("3"))).toMatchObject({ history: null });
    const small = new RememberedResponses(100, 200);
    for (let at = 0; at < 50; at++) small.set(key(String(at)), response("x".repeat(50), null));
    expect(await small.of(key("47"))).toBeNull();
    expect(await saidIn(small, "49")).toHaveLength(1);
    small.set(key("long"), response("x".repeat(500), null));
    expect([await small.of(key("long")), await saidIn(small, "49")]).toEqual([null, ["x".repeat(50)]]);
  });

  it("are gone once their user deleted something", async () => {
    const remembered = new RememberedResponses();
    remembered.set(key("1"), response("a", null, watching(true)));
    remembered.set(key("2"), response("b", "1"));
    expect(await remembered.of(key("2"))).toMatchObject({ history: null });
    expect([await remembered.of(key("1")), await remembered.of(key("2"))]).toEqual([null, null]);
  });

  it("end where an engine gave one id twice", async () => {
    const remembered = new RememberedResponses();
    remembered.set(key("1"), response("a", "1"));
    expect(await remembered.of(key("1"))).toMatchObject({ history: null });
  });
});
