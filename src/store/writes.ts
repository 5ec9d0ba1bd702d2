import type { Scope, TurnId } from "../core/index.js";
import { type Database, sql } from "./database.js";
import { agentIn, decodedJson, scopeName } from "./rows.js";
import type { StoredWrite, WaitingWrites, WriteQueue } from "./store.js";

const FIRST = "(select min(f.id) from writes f where f.scope_id = $1 and f.queue = $2)";

export function writesIn(database: Database): WaitingWrites {
  const { read, take, lockFree } = database;
  return {
    keep: (scope, { queue, addition, exchanges, requestId, at }) =>
      database.hold(scope, async (transaction) => {
        const text = `select s.id as "scopeId",
          (select max(r.turn_id) from requests r where r.scope_id = s.id and r.id = $5) as turn,
          (select sum(w.exchanges) from writes w where w.scope_id = s.id and w.queue = $4) as waiting
          from scopes s where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3`;
        type Found = { scopeId: number; turn: TurnId | null; waiting: number | null };
        const [found] = await transaction.read<Found>(text, [...scopeName(scope), queue, requestId]);
        if (found === undefined || (requestId !== null && found.turn === null)) return null;
        const { scopeId, turn, waiting } = found;
        const insert = `insert into writes (scope_id, queue, turn_id, at, exchanges, addition) values ($1, $2, $3, $4, $5, $6)`;
        await transaction.commit([sql(insert, scopeId, queue, turn, at, exchanges, JSON.stringify(addition))]);
        return { scope, scopeId, queue, waiting: (waiting ?? 0) + exchanges };
      }),

    async due(now, enough, idleSince) {
      const text = `select w.scope_id as "scopeId", w.queue, s.tenant, s.user_id as "userId", s.agent_id as agent
        from writes w join scopes s on s.id = w.scope_id
        group by w.scope_id, w.queue, s.tenant, s.user_id, s.agent_id
        having max(w.held_until) <= $1 and (sum(w.exchanges) >= $2 or max(w.at) <= $3) order by min(w.id) limit 100`;
      type Due = Pick<WriteQueue, "scopeId" | "queue"> & Omit<Scope, "agentId"> & { readonly agent: string };
      const rows = await read<Due>(text, [now, enough, idleSince]);
      return rows.map(({ agent, tenant, userId, ...queue }) => {
        return { ...queue, scope: { tenant, userId, agentId: agentIn(agent) } };
      });
    },

    async claim({ scopeId, queue }, now, until) {
      const text = `update writes set held_until = $4 where id = (select w.id from writes w
        where w.id = ${FIRST} and w.held_until <= $3 ${lockFree}) returning id`;
      return (await take(text, [scopeId, queue, now, until])).length > 0;
    },

    async release() {
      if (!database.isShared) await database.write([sql("update writes set held_until = 0 where held_until > 0")]);
    },

    async first({ scopeId, queue }, limit) {
      const text = "select id, addition, exchanges from writes where scope_id = $1 and queue = $2 order by id limit $3";
      const rows = await read<StoredWrite & { addition: string }>(text, [scopeId, queue, limit]);
      return rows.map((row) => ({ ...row, addition: decodedJson("an exchange", row.addition) }));
    },

    unhold: ({ scopeId, queue }) =>
      database.write([sql(`update writes set held_until = 0 where id = ${FIRST}`, scopeId, queue)]),

    remove: ({ scopeId, queue }, upTo) =>
      database.write([sql("delete from writes where scope_id = $1 and queue = $2 and id <= $3", scopeId, queue, upTo)]),
  };
}
