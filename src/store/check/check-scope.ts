import { and, eq } from "drizzle-orm";
import {
  type BlockRegister,
  digestOf,
  type IndexNode,
  labelsIn,
  type NodeId,
  type RenderedWords,
  type RequestId,
  renderSection,
  type ScopeCounters,
  type StoredScope,
} from "../../core/index.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type { OpenDatabase } from "../database/open-database.js";
import { conversations, heads, messages, requests, sections, turns } from "../database/schema.js";
import { SELECT_TURNS, type TurnRow } from "../database/statements.js";
import type { RequestRecords } from "../records/request-records.js";
import { readTurn } from "../records/rows.js";
import { idsOf, StoredMessages } from "../records/stored-messages.js";

/** Checks blocks, versions and index nodes against each other: every reference resolves, nothing is there twice. */
export function* checkRows({ counters, bankedTokens, register, nodes }: StoredScope): Generator<string> {
  if (bankedTokens < 0) yield "its memory bank is below zero";
  const labels = new Set(register.blocks.map(({ label }) => label));
  const lengths = new Map(register.blocks.map(({ label, text }) => [label, text.length]));
  const digests = new Set<string>();
  for (const { label, textDigest, supersededBy } of register.blocks) {
    if (label >= counters.nextLabel) yield `block [${label}] has a label past the scope's counter`;
    if (digests.has(textDigest)) yield `block [${label}] has the same text as another block`;
    digests.add(textDigest);
    if (supersededBy !== null && !labels.has(supersededBy))
      yield `block [${label}] is superseded by a block that is missing`;
  }
  const current = new Map<string, number>();
  const held = new Set<number>();
  for (const { memoryId, label, current: isCurrent, rendered } of register.versions) {
    if (!labels.has(label)) yield `a memory version refers to block [${label}], which is missing`;
    else if (rendered !== undefined && !isWithin(rendered, lengths.get(label) ?? 0))
      yield `block [${label}] is shorter than its memory's own words`;
    held.add(label);
    current.set(memoryId, (current.get(memoryId) ?? 0) + (isCurrent ? 1 : 0));
    if (register.forgotten.includes(memoryId)) yield `block [${label}] belongs to a forgotten memory`;
  }
  if ([...current.values()].some((count) => count !== 1)) yield "a memory does not have exactly one current version";
  for (const label of labels) if (!held.has(label)) yield `block [${label}] belongs to no memory`;
  for (const { id, run } of nodes) {
    if (id >= counters.nextNode) yield `index node ${id} has an id past the scope's counter`;
    for (const label of run)
      if (!labels.has(label)) yield `index node ${id} refers to block [${label}], which is missing`;
  }
}

function isWithin({ start, length }: RenderedWords, textLength: number): boolean {
  return start >= 0 && length > 0 && start + length <= textLength;
}

/** Checks turns: each continues an earlier one, and its section can be rendered again and has its digest stored. */
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
    if (id >= nextTurn) yield `turn ${id} has an id past the scope's counter`;
    if (parent !== null && !conversationOf.has(parent))
      yield `turn ${id} continues turn ${parent}, which does not precede it`;
    else if (parent !== null && conversationOf.get(parent) !== conversationId)
      yield `turn ${id} continues turn ${parent} of another conversation`;
    conversationOf.set(id, conversationId);
    if (conversationId !== null && !named.has(conversationId))
      yield `turn ${id} belongs to a conversation that is missing`;
    if (!headed.has(row.head)) yield `turn ${id} has instructions that are missing`;
    const missing = [...labelsIn(turn.injection)].filter((label) => register.get(label) === undefined);
    if (missing.length > 0) yield `turn ${id} injects blocks [${missing.join("], [")}], which are missing`;
    else {
      const section = renderSection(turn.injection, register.textOf);
      if (section !== "" && !known.has(digests.seal(digestOf(section))))
        yield `turn ${id} sent a section whose digest is missing`;
    }
  }
  const there = orm.select({ id: messages.id }).from(messages).where(eq(messages.scopeId, scopeId)).all();
  for (const { id } of there) {
    if (!listed.delete(id)) yield `message ${id} belongs to no turn and no instructions`;
  }
  for (const id of listed) yield `message ${id} is referred to and missing`;
}

/** Checks requests: every answer can be repeated, and no node counts more live requests than there are. */
export function checkRequests(
  orm: OpenDatabase["orm"],
  scopeId: number,
  answers: Pick<RequestRecords, "answered">,
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
    if (stored === undefined) problems.push(`request ${JSON.stringify(id)} refers to turn ${turn}, which is missing`);
    else answers.answered(scopeId, id as RequestId);
  }
  for (const node of nodes) {
    const most = live.get(node.id) ?? 0;
    if (node.live > most) problems.push(`index node ${node.id} counts ${node.live} live requests of ${most}`);
  }
  return { count: rows.length, problems };
}
