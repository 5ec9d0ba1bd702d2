import { storeIn } from "../../../src/store/sql-store.js";
import { SqliteDatabase } from "../../../src/store/sqlite/database.js";
import { openFile } from "../../../src/store/sqlite/open.js";
import { finishErasure } from "../../../src/store/sqlite/writer.js";
import { ComposedUsers, scopeOf } from "../composed-users.js";
import { builtModule } from "./built-store.js";

/*
 * A process that composes for several users at once until it is killed, and prints what was acknowledged: `composed user request` or
 * `forgotten user memory`, a line each.
 */

const USERS = 8;
const [file = "", run = ""] = process.argv.slice(2);
const threads = new URL(".", builtModule("sqlite/thread"));
const database = new SqliteDatabase(openFile(file, finishErasure), () => false, threads);
const users = new ComposedUsers(storeIn(database));

/** Each ninth prompt's own memory is forgotten before the next one. */
function isForgottenAfter(n: number): boolean {
  return n % 9 === 8;
}

async function live(user: number): Promise<never> {
  const scope = scopeOf(`user-${user}`);
  for (let n = 0; ; n++) {
    const name = `${run}-${n}`;
    const memories = {
      [`m${n % 12}`]: `Fact ${n % 12} of user ${user}.`,
      [`only-${name}`]: `Only ${name} of user ${user}.`,
    };
    const conversation = `c${run}-${n % 3}`;
    await users.compose(scope, { requestId: name, question: `Question ${name}?`, memories, conversation });
    process.stdout.write(`composed ${user} ${name}\n`);
    if (n % 5 === 1) await users.report(scope, name, { promptTokens: 100, cachedTokens: n % 100 });
    if (!isForgottenAfter(n)) continue;
    await users.forget(scope, `only-${name}`);
    process.stdout.write(`forgotten ${user} only-${name}\n`);
  }
}

process.stdout.write("started\n");
await Promise.all(Array.from({ length: USERS }, (_, user) => live(user)));
