import { describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { TenantQueues, UserQueues } from "../../../src/service/scopes/user-queues.js";

describe("a user's queue", () => {
  it("is full from its bound on, and others' are not", () => {
    const jobs = new TenantQueues("t", new UserQueues(), {} as never, new AbortController().signal, 1);
    jobs.rejectIfBusy("ana" as UserId);
    void jobs.run("ana" as UserId, () => undefined);
    expect(() => jobs.rejectIfBusy("ana" as UserId)).toThrow();
    jobs.rejectIfBusy("bob" as UserId);
  });
});
