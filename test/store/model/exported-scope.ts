import type { ExportedRow, ExportedScope } from "../../../src/store/api/store.js";
import type { KeptScope } from "./kept-scope.js";

/** See `Store.exportUser`: everything of a scope in tables, without digests and the scope's number. */
export function exportScope(kept: KeptScope): ExportedScope {
  const { register, nodes, recent, workers, published, counters, bankedTokens } = kept.state;
  const ordering = (kind: string, id: number, row: unknown) => ({ kind, id, row: snakeCased(row) });
  const turns = [...kept.turns.values()];
  return {
    agentId: kept.scope.agentId,
    scope: rowOf({ version: kept.commits, ...counters, createdAt: kept.createdAt, bankedTokens }),
    tables: {
      blocks: register.blocks.map(({ label, text, tokens, supersededBy }) =>
        rowOf({ label, text, tokens, supersededBy }),
      ),
      memory_versions: register.versions.map(
        ({ dated = false, found = false, ofRun = false, until = null, ...version }) =>
          rowOf({ ...version, found, ofRun, until, dated }),
      ),
      index_nodes: nodes.map(({ anchor: _anchor, ...node }) => rowOf(node)),
      ordering_rows: [
        ...published.accesses.map(({ turn, ...row }) => ordering("access", turn, row)),
        ...published.clusters.map(({ id, ...row }) => ordering("cluster", id, row)),
        ...recent.map(({ turn, labels }) => ordering("recent", turn, labels)),
        ...workers.map(({ id, ...row }) => ordering("worker", id, row)),
      ],
      conversations: conversationsOf(kept),
      heads: [...kept.heads.values()].map((messages) => ({ messages })),
      turns: turns.map(({ turn, given, at }) => {
        const { head: _head, prompt: _prompt, anchor: _anchor, meant: _meant, behind: _behind, ...named } = turn;
        return { ...rowOf({ ...named, createdAt: at }), given };
      }),
      requests: [...kept.requests.values()].map(({ id, body: _body, at, ...request }) =>
        rowOf({ requestId: id, ...request, createdAt: at }),
      ),
      responses: [...kept.responses].map(([id, { requestId }]) => rowOf({ id, requestId })),
    },
  };
}

function conversationsOf(kept: KeptScope): readonly ExportedRow[] {
  const ids = new Set([...kept.turns.values()].flatMap(({ turn }) => turn.conversationId ?? []));
  return [...ids].map((id) => {
    const turns = kept.turnsOf(id);
    const times = turns.map(({ at }) => at);
    const sent = turns.filter(({ turn }) => turn.promptTokens > 0).length;
    return rowOf({ id, turns: sent, createdAt: Math.min(...times), lastTurnAt: Math.max(...times) });
  });
}

function rowOf(fields: object): ExportedRow {
  return snakeCased(fields) as ExportedRow;
}

/** Names of fields in `snake_case`. */
function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snakeCased(inner),
    ]),
  );
}
