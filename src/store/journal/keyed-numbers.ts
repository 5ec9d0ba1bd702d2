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
    // A digest as a string of bytes takes a third of the time of one as a buffer.
    blocks.write(hash("sha256", name, "binary"), at * DigestSeal.BLOCK_BYTES, DigestSeal.BLOCK_BYTES, "latin1");
  }
  return digests.sealBlocks(blocks);
}
