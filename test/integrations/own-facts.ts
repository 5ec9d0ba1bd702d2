import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMemprefix, type MemprefixClient } from "../../src/index.js";
import { FACTS } from "../clients/client-program.js";

/** The library with memories of a caller's own: one fact more with each search, the newest first. */
export interface FactsMemprefix {
  readonly memprefix: MemprefixClient;
  /** Reports of usage, as they were given. */
  readonly reports: Parameters<MemprefixClient["feedback"]>[0][];
  close(): Promise<void>;
}

export function factsMemprefix(facts: readonly string[] = FACTS): FactsMemprefix {
  const dataDir = mkdtempSync(join(tmpdir(), "memprefix-integration-"));
  const searches = new Map<string, number>();
  const opened = createMemprefix({
    dataDir,
    source: {
      search: (_query: string, { filters: { user_id: user } }: { filters: { user_id: string } }) => {
        const count = (searches.get(user) ?? 0) + 1;
        searches.set(user, count);
        const found = facts.slice(0, 1 + ((count - 1) % facts.length)).toReversed();
        return found.map((memory, at) => ({ id: `${user}-${facts.length - at}-${memory}`, memory }));
      },
    },
  });
  const reports: Parameters<MemprefixClient["feedback"]>[0][] = [];
  return {
    memprefix: {
      ...opened,
      feedback: (report) => {
        reports.push(report);
        return opened.feedback(report);
      },
    },
    reports,
    close: async () => {
      await opened.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
