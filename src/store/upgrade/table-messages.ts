import { z } from "zod";
import type { ChatMessage, Digest, Turn } from "../../core/index.js";
import type { DatabaseConnection } from "../database/connection.js";
import type { SealedDigest } from "../database/digest-seal.js";
import { prepare, prepareValue, type Statement } from "../database/statements.js";
import { parsedBody } from "../journal/damaged-record.js";

/** Messages' digests: of what they are, and of what they mean. */
export type SaidDigests = Pick<Turn, "given" | "meant">;

/** JSON array of ids in `messages`, as `turns` and `heads` hold it. */
export type MessageList = string;

const message = z.object({ role: z.string() }) as unknown as z.ZodType<ChatMessage>;

const listed = (columns: string) =>
  `select ${columns} from json_each(?) listed cross join messages on messages.id = listed.value order by listed.key`;

/** Reads the application's messages: each is stored once per scope; turns and heads refer to them by lists of ids. */
export class TableMessages {
  readonly #bodies: Statement<MessageList, string | null>;
  readonly #body: Statement<number, string | null>;
  readonly #repeated: Statement<number, number>;
  readonly #said: Statement<MessageList, { readonly digest: SealedDigest; readonly meant: SealedDigest | null }>;

  constructor(private readonly connection: DatabaseConnection) {
    const { sqlite } = connection;
    this.#bodies = prepareValue(sqlite, listed("body"));
    this.#body = prepareValue(sqlite, "select body from messages where id = ?");
    this.#repeated = prepareValue(
      sqlite,
      `select listed.value from turns, json_each(turns.given) listed
       where turns.scope_id = ? group by listed.value having count(*) > 1`,
    );
    this.#said = prepare(sqlite, listed("digest, meant"));
  }

  /** Digests of listed messages. */
  saidIn(list: MessageList): SaidDigests {
    const { digests } = this.connection;
    const given: Digest[] = [];
    const meant: Digest[] = [];
    for (const row of this.#said.all(list)) {
      const digest = digests.open(row.digest);
      given.push(digest);
      meant.push(row.meant === null ? digest : digests.open(row.meant));
    }
    return { given, meant };
  }

  /** Listed messages, null for each erased one. */
  bodiesOf(list: MessageList): readonly (ChatMessage | null)[] {
    return this.#bodies.all(list).map(readBody);
  }

  /** Ids of the messages that turns of a scope were given more than once. */
  repeatedIn(scopeId: number): ReadonlySet<number> {
    return new Set(this.#repeated.all(scopeId));
  }

  /** One message; null: erased. */
  bodyOf(id: number): ChatMessage | null {
    return readBody(this.#body.get(id) ?? null);
  }
}

function readBody(body: string | null): ChatMessage | null {
  return body === null ? null : parsedBody("a message", body, message);
}
