import { z } from "zod";
import type {
  AgentId,
  ChatMessage,
  ConversationId,
  Digest,
  IndexNode,
  Injection,
  Label,
  NodeId,
  Scope,
  StoredBlock,
  Turn,
  TurnId,
  UserId,
} from "../core/index.js";
import type { blocks, indexNodes, turns, users } from "./schema.js";
import type { StoredAnswer } from "./store.js";

/*
 * Rows to values and back. What SQLite holds was written by this room, so JSON columns are checked for their outer shape only:
 * enough to fail clearly on a damaged file.
 */

const jsonArray = z.array(z.unknown());
const jsonInjection = z.object({ blocks: jsonArray, annotations: jsonArray });
const jsonAnswer = z.object({ memories: jsonArray, plan: z.looseObject({}), warnings: jsonArray });

export function readLabels(json: string): readonly Label[] {
  return jsonArray.parse(JSON.parse(json)) as Label[];
}

export function readMessages(json: string): readonly ChatMessage[] {
  return jsonArray.parse(JSON.parse(json)) as ChatMessage[];
}

export function readInjection(json: string): Injection {
  return jsonInjection.parse(JSON.parse(json)) as unknown as Injection;
}

export function readAnswer(json: string): StoredAnswer {
  return jsonAnswer.parse(JSON.parse(json)) as unknown as StoredAnswer;
}

export function readScope(row: typeof users.$inferSelect): Scope {
  return {
    tenant: row.tenant,
    userId: row.userId as UserId,
    agentId: row.agentId === "" ? null : (row.agentId as AgentId),
  };
}

export function readBlock(row: typeof blocks.$inferSelect): StoredBlock {
  return {
    label: row.label as Label,
    text: row.text,
    textDigest: row.textDigest as Digest,
    tokens: row.tokens,
    supersededBy: row.supersededBy as Label | null,
  };
}

export function readNode(row: typeof indexNodes.$inferSelect): IndexNode {
  return {
    id: row.id as NodeId,
    parent: row.parent as NodeId | null,
    anchor: row.anchor as Digest | null,
    run: readLabels(row.run),
    position: row.position,
    nextPosition: row.nextPosition,
    uses: row.uses,
    live: row.live,
    lastUsed: row.lastUsed,
  };
}

export function readTurn(row: typeof turns.$inferSelect): Turn {
  return {
    id: row.id as TurnId,
    conversationId: row.conversationId as ConversationId | null,
    parent: row.parent as TurnId | null,
    given: jsonArray.parse(JSON.parse(row.givenDigests)) as Digest[],
    placement: row.placement,
    injection: readInjection(row.injection),
    head: row.head as Digest,
    prompt: row.prompt as Digest,
    anchor: row.anchor as Digest,
    promptTokens: row.promptTokens,
  };
}
