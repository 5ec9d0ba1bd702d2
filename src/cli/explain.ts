import { z } from "zod";
import { writeExplanation } from "../http/contracts/explain-contract.js";
import * as field from "../service/fields/fields.js";
import { readOptions } from "../service/fields/fields.js";
import { assembleBeside } from "./assemble.js";
import { withDatabase } from "./data-directory.js";
import type { Invocation } from "./invocation.js";
import { readSettings } from "./settings.js";

export interface ExplainOptions {
  readonly user: string;
  readonly agent?: string;
  readonly json?: boolean;
}

const named = z.object({ request_id: field.requestId, user: field.userId, agent: field.agentId.optional() });

/** Explains a request from the configured database, in words or as JSON. Rejects for an unknown request. */
export async function runExplain(
  id: string,
  options: ExplainOptions,
  { env, print }: Pick<Invocation, "env" | "print">,
): Promise<void> {
  const { request_id, user, agent = null } = readOptions(named, { request_id: id, ...options });
  // Explaining searches no memories.
  const memprefix = await assembleBeside(withDatabase(readSettings(env)), null);
  try {
    const explanation = await memprefix.explain(user, agent, request_id);
    const json = () => JSON.stringify(writeExplanation(explanation), null, 2);
    print(options.json === true ? json() : explanation.words.join("\n"));
  } finally {
    await memprefix.close();
  }
}
