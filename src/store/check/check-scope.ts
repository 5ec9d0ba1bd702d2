import { and, eq } from "drizzle-orm";
import {
  type BlockRegister,
  digestOf,
  type IndexNode,
  labelsIn,
  type NodeId,
  type RequestId,
  renderSection,
  type Scope,
  type ScopeCounters,
  type StoredScope,
} from "../../core/index.js";
import type { Store } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type { OpenDatabase } from "../database/open-database.js";
import { conversations, heads, messages, requests, sections, turns } from "../database/schema.js";
import { SELECT_TURNS, type TurnRow } from "../database/statements.js";
import { readTurn } from "../records/rows.js";
import { idsOf, StoredMessages } from "../records/stored-messages.js";

/** What rows of a scope that load by themselves say of each other: nothing is named that is not there, nothing twice. */
export function* checkRows({ counters, bankedTokens, register, nodes }: StoredScope): Generator<string> {
  if (bankedTokens < 0) yield "its prompts sent more memory than their budget";
  const labels = new Set(register.blocks.map(({ label }) => label));
  const digests = new Set<string>();
  for (const { label, textDigest, supersededBy } of register.blocks) {
    if (label >= counters.nextLabel) yield `block [${label}] has a label that was never given`;
    if (digests.has(textDigest)) yield `block [${label}] has another block's text`;
    digests.add(textDigest);
    if (supersededBy !== null && !labels.has(supersededBy))
      yield `block [${label}] is superseded by none that is there`;
  }
  const current = new Map<string, number>();
  const held = new Set<number>();
  for (const { memoryId, label, current: isCurrent } of register.versions) {
    if (!labels.has(label)) yield `a memory's version names block [${label}], which is not there`;
    held.add(label);
    current.set(memoryId, (current.get(memoryId) ?? 0) + (isCurrent ? 1 : 0));
    if (register.forgotten.includes(memoryId)) yield `block [${label}] is a memory's that was forgotten`;
  }
  if ([...current.values()].some((count) => count !== 1)) yield "a memory has not one current version";
  for (const label of labels) if (!held.has(label)) yield `block [${label}] is no memory's`;
  for (const { id, run } of nodes) {
    if (id >= counters.nextNode) yield `index node ${id} has an id that was never given`;
    for (const label of run)
      if (!labels.has(label)) yield `index node ${id} names block [${label}], which is not there`;
  }
}

/** Turns: each goes on from an earlier one, and what it injected can be rendered again and is known as ours. */
export function* checkTurns(
  { orm, sqlite, digests }: OpenDatabase,
  scopeId: number,
  { nextTurn }: ScopeCounters,
  register: BlockRegister,
): Generator<string> {
  const known = new Set(
    orm
      .select({ digest: sections.digest })
      .from(sections)
      .where(eq(sections.scopeId, scopeId))
      .all()
      .map(({ digest }) => digest),
  );
  const listed = new Set<number>();
  const headed = new Set<SealedDigest>();
  for (const { digest, messages: list } of orm.select().from(heads).where(eq(heads.scopeId, scopeId)).all()) {
    headed.add(digest);
    for (const id of idsOf(list ?? "[]")) listed.add(id);
  }
  const stored = new StoredMessages({ sqlite, digests });
  const named = new Set(
    orm
      .select({ id: conversations.id })
      .from(conversations)
      .where(eq(conversations.scopeId, scopeId))
      .all()
      .map(({ id }) => id),
  );
  const conversationOf = new Map<number, string | null>();
  const rows = sqlite.prepare<[number], TurnRow>(`${SELECT_TURNS} where scope_id = ? order by id`);
  for (const row of rows.all(scopeId)) {
    const said = stored.saidIn(row.given);
    const turn = readTurn(row, said, digests);
    const ids = idsOf(row.given);
    for (const message of ids) listed.add(message);
    const { id, parent, conversationId } = turn;
    if (id >= nextTurn) yield `turn ${id} has an id that was never given`;
    if (parent !== null && !conversationOf.has(parent))
      yield `turn ${id} goes on from turn ${parent}, which is not before it`;
    else if (parent !== null && conversationOf.get(parent) !== conversationId)
      yield `turn ${id} goes on from another conversation's turn ${parent}`;
    conversationOf.set(id, conversationId);
    if (conversationId !== null && !named.has(conversationId))
      yield `turn ${id} is of a conversation that is not there`;
    if (!headed.has(row.head)) yield `turn ${id} has instructions that are not there`;
    const missing = [...labelsIn(turn.injection)].filter((label) => register.get(label) === undefined);
    if (missing.length > 0) yield `turn ${id} gives blocks [${missing.join("], [")}], which are not there`;
    else {
      const section = renderSection(turn.injection, register.textOf);
      if (section !== "" && !known.has(digests.seal(digestOf(section))))
        yield `turn ${id} sent a section that is not known as ours`;
    }
  }
  const there = orm.select({ id: messages.id }).from(messages).where(eq(messages.scopeId, scopeId)).all();
  for (const { id } of there) {
    if (!listed.delete(id)) yield `message ${id} is no turn's and no instruction`;
  }
  for (const id of listed) yield `message ${id} is named and not there`;
}

/** Requests: every answer can be given again, and no node counts more of them than there are. */
export function checkRequests(
  orm: OpenDatabase["orm"],
  scopeId: number,
  scope: Scope,
  store: Pick<Store, "findRequest">,
  nodes: readonly IndexNode[],
): { readonly count: number; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const live = new Map<NodeId, number>();
  const rows = orm
    .select({ id: requests.requestId, turn: requests.turn, leaf: requests.leaf, evicted: requests.evicted })
    .from(requests)
    .where(eq(requests.scopeId, scopeId))
    .all();
  for (const { id, turn, leaf, evicted } of rows) {
    if (!evicted) live.set(leaf as NodeId, (live.get(leaf as NodeId) ?? 0) + 1);
    const stored = orm
      .select({ id: turns.id })
      .from(turns)
      .where(and(eq(turns.scopeId, scopeId), eq(turns.id, turn)))
      .get();
    if (stored === undefined) problems.push(`request ${JSON.stringify(id)} names turn ${turn}, which is not there`);
    else store.findRequest(scope, id as RequestId);
  }
  for (const node of nodes) {
    const most = live.get(node.id) ?? 0;
    if (node.live > most) problems.push(`index node ${node.id} counts ${node.live} requests, and ${most} are there`);
  }
  return { count: rows.length, problems };
}
