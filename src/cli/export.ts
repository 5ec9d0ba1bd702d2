import { z } from "zod";
import { exportOf, writeExport } from "../http/contracts/user-contract.js";
import { DEFAULT_TENANT } from "../service/base/tenant.js";
import * as field from "../service/fields/fields.js";
import { readOptions } from "../service/fields/fields.js";
import { assembleBeside } from "./assemble.js";
import { withDatabase } from "./data-directory.js";
import type { Invocation } from "./invocation.js";
import { readSettings } from "./settings.js";

export interface ExportOptions {
  readonly tenant?: string;
}

/** Prints everything stored on a user, as `GET /users/{user_id}/export` does. */
export async function runExport(
  user: string,
  { tenant = DEFAULT_TENANT.name }: ExportOptions,
  { env, print }: Pick<Invocation, "env" | "print">,
): Promise<void> {
  const { user_id } = readOptions(z.object({ user_id: field.userId }), { user_id: user });
  const memprefix = await assembleBeside(withDatabase(readSettings(env)));
  try {
    const own = memprefix.forTenant({ ...DEFAULT_TENANT, name: tenant });
    print(JSON.stringify(writeExport(exportOf(await own.exportUser(user_id))), null, 2));
  } finally {
    await memprefix.close();
  }
}
