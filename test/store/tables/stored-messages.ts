import type Database from "better-sqlite3";
import { type ChatMessage, type Digest, meaningDigest, messageDigest } from "../../../src/core/index.js";
import type { DatabaseConnection } from "../../../src/store/database/connection.js";
import type { SealedDigest } from "../../../src/store/database/digest-seal.js";
import { type MessageList, type SaidDigests, TableMessages } from "../../../src/store/upgrade/table-messages.js";

// An erased body counts as equal: a message that is sent again is stored again.
const FIND = `select id, body is null as erased from messages
  where scope_id = @scopeId and digest = @digest and (body is null or body = @body) order by erased limit 1`;
const ADD = "insert into messages (scope_id, digest, meant, body) values (@scopeId, @digest, @meant, @body)";
const RESTORE = "update messages set body = @body where id = @id and body is null";
const HEAD = `select messages as list, exists
  (select 1 from json_each(heads.messages) listed join messages on messages.id = listed.value where body is null) as erased
  from heads where scope_id = @scopeId and digest = @digest`;
const KEEP_HEAD = `insert into heads (scope_id, digest, messages) values (@scopeId, @digest, @messages)
  on conflict do update set messages = excluded.messages`;

/** The same for no messages, in one statement: a list without messages has none that was erased. */
const KEEP_EMPTY_HEAD = `insert into heads (scope_id, digest, messages) values (@scopeId, @digest, '[]')
  on conflict do update set messages = excluded.messages where messages is null`;

/** The ids that a list holds. */
export function idsOf(list: MessageList): readonly number[] {
  return JSON.parse(list) as number[];
}

/**
 * The application's messages: each is stored once per scope; turns and heads refer to them by lists of ids. References are not counted: a
 * window that slides over a hundred messages would write a hundred rows per turn. Whoever removes turns also names the messages that only
 * they referred to.
 */
export class StoredMessages extends TableMessages {
  readonly #find: Database.Statement<[object], { readonly id: number; readonly erased: 0 | 1 }>;
  readonly #add: Database.Statement<[object]>;
  readonly #restore: Database.Statement<[object]>;
  readonly #head: Database.Statement<[object], { readonly list: MessageList | null; readonly erased: 0 | 1 }>;
  readonly #keepHead: Database.Statement<[object]>;
  readonly #keepEmptyHead: Database.Statement<[object]>;

  constructor(private readonly database: DatabaseConnection) {
    super(database);
    const { sqlite } = database;
    this.#find = sqlite.prepare(FIND);
    this.#add = sqlite.prepare(ADD);
    this.#restore = sqlite.prepare(RESTORE);
    this.#head = sqlite.prepare(HEAD);
    this.#keepHead = sqlite.prepare(KEEP_HEAD);
    this.#keepEmptyHead = sqlite.prepare(KEEP_EMPTY_HEAD);
  }

  /** Stores messages that are not stored yet. Inside the caller's transaction. */
  keep(scopeId: number, messages: readonly ChatMessage[], { given, meant }: SaidDigests): MessageList {
    if (messages.length !== given.length) throw new Error("as many digests as messages");
    const { digests } = this.database;
    const ids = messages.map((message, at) => {
      const digest = digests.seal(given[at] as Digest);
      const body = JSON.stringify(message);
      const known = this.#find.get({ scopeId, digest, body });
      if (known === undefined) {
        const isMeant = meant[at] === given[at];
        const row = { scopeId, digest, meant: isMeant ? null : digests.seal(meant[at] as Digest), body };
        return Number(this.#add.run(row).lastInsertRowid);
      }
      if (known.erased === 1) this.#restore.run({ id: known.id, body });
      return known.id;
    });
    return JSON.stringify(ids);
  }

  /** Stores the instructions at the head of a prompt, where they are missing or erased. */
  keepHead(scopeId: number, digest: SealedDigest, messages: readonly ChatMessage[]): void {
    if (messages.length === 0) {
      this.#keepEmptyHead.run({ scopeId, digest });
      return;
    }
    const known = this.#head.get({ scopeId, digest });
    if (known === undefined || known.list === null) {
      const given = messages.map(messageDigest);
      const meant = messages.map((message, at) => meaningDigest(message, given[at] as Digest));
      const list = this.keep(scopeId, messages, { given, meant });
      this.#keepHead.run({ scopeId, digest, messages: list });
    } else if (known.erased === 1) {
      for (const [at, id] of idsOf(known.list).entries()) this.#restore.run({ id, body: JSON.stringify(messages[at]) });
    }
  }

  /** Listed messages, or null where one of them was erased. */
  wholeOf(list: MessageList): readonly ChatMessage[] | null {
    const messages = this.bodiesOf(list);
    return messages.includes(null) ? null : (messages as readonly ChatMessage[]);
  }
}
