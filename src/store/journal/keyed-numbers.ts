import { hash } from "node:crypto";
import type { ConversationId, MemoryId } from "../../core/index.js";
import { DigestSeal } from "../database/digest-seal.js";

const CONVERSATION_BYTES = 6;

/** The number of a conversation in its records' keys: 48 bits of a keyed hash, so that two conversations of one scope hardly share one. */
export function conversationNumber(id: ConversationId, digests: DigestSeal): number {
  return keyedBlocks([id], digests).readUIntBE(0, CONVERSATION_BYTES);
}

/** The hash of a memory's id by which walks find scopes: 32 bits, keyed. Different memories may share one. */
export function memoryHash(id: MemoryId, digests: DigestSeal): number {
  return keyedBlocks([id], digests).readUInt32BE(0);
}

/** The same of several, in their order. */
export function memoryHashes(ids: Iterable<MemoryId>, digests: DigestSeal): number[] {
  const blocks = keyedBlocks([...ids], digests);
  return Array.from({ length: blocks.length / DigestSeal.BLOCK_BYTES }, (_, at) =>
    blocks.readUInt32BE(at * DigestSeal.BLOCK_BYTES),
  );
}

/** The first block of each name's sealed digest. All are sealed at once: a new user's first compose names every memory. */
function keyedBlocks(names: readonly string[], digests: DigestSeal): Buffer {
  const blocks = Buffer.allocUnsafe(names.length * DigestSeal.BLOCK_BYTES);
  for (const [at, name] of names.entries()) {
    hash("sha256", name, "buffer").copy(blocks, at * DigestSeal.BLOCK_BYTES, 0, DigestSeal.BLOCK_BYTES);
  }
  return digests.sealBlocks(blocks);
}
