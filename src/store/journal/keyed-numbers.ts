import { type ConversationId, digestOf, type MemoryId } from "../../core/index.js";
import type { DigestSeal } from "../database/digest-seal.js";

const CONVERSATION_BYTES = 6;

/** The number of a conversation in its records' keys: 48 bits of a keyed hash, so that two conversations of one scope hardly share one. */
export function conversationNumber(id: ConversationId, digests: DigestSeal): number {
  return sealedBytes(id, digests).readUIntBE(0, CONVERSATION_BYTES);
}

/** The hash of a memory's id by which walks find scopes: 32 bits, keyed. Different memories may share one. */
export function memoryHash(id: MemoryId, digests: DigestSeal): number {
  return sealedBytes(id, digests).readUInt32BE(0);
}

function sealedBytes(name: string, digests: DigestSeal): Buffer {
  return Buffer.from(digests.seal(digestOf(name)), "base64url");
}
