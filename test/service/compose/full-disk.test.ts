import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { SqliteDatabase } from "../../../src/store/sqlite/database.js";
import { DATABASE_FILE, openFile } from "../../../src/store/sqlite/open.js";
import { storedCounts } from "../../stored-counts.js";
import { temporaryFolder } from "../../temporary-folders.js";
import { composeWith, memories, openService } from "./service-fixture.js";

const directory = temporaryFolder();

describe("a service whose disk is full", () => {
  it("answers nothing that is not stored, and goes on as if it had not been asked", async () => {
    const connection = openFile(join(directory, DATABASE_FILE));
    const service = openService({ store: storeIn(new SqliteDatabase(connection, () => false, null)) });
    const ask = (user: string, requestId: string, text: string) =>
      composeWith(service, {
        userId: user as UserId,
        requestId,
        conversationId: "c",
        messages: [{ role: "user", content: "Where?" }],
        memories: memories({ m: text }),
      });
    await ask("ana", "r1", "Ana lives here.");
    // No room is left of the tables that a new file has for a moment.
    connection.sqlite.exec("vacuum");
    const pages = connection.sqlite.pragma("page_count", { simple: true }) as number;
    connection.sqlite.pragma(`max_page_count = ${pages}`);
    const long = "far away ".repeat(2_000);
    const failed = await Promise.allSettled([
      ask("bo", "r2", "Bo lives there."),
      ask("cy", "r3", long),
      ask("ana", "r4", long),
    ]);
    expect(failed.map(({ status }) => status)).toContain("rejected");
    connection.sqlite.pragma("max_page_count = 1000000");
    for (const [at, [user, requestId, text]] of [
      ["bo", "r2", "Bo lives there."],
      ["cy", "r3", long],
      ["ana", "r4", long],
    ].entries() as Iterable<[number, [string, string, string]]>) {
      const before = failed[at];
      const answer = await ask(user, requestId, text);
      if (before?.status === "fulfilled") expect(answer).toEqual(before.value);
      expect(JSON.stringify(answer.messages)).toContain(text.trim());
      expect(answer.messages).toHaveLength(1);
    }
    expect(storedCounts(await service.exportUser("bo" as UserId))).toMatchObject({ blocks: 1, requests: 1 });
    expect(storedCounts(await service.exportUser("ana" as UserId))).toMatchObject({ blocks: 2, requests: 2 });
    await service.close();
  });
});
