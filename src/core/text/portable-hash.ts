/*
 * SHA-256 without `node:crypto`, for browsers and workers, by package.json's `imports`. Web Crypto's digest is asynchronous; composing is not.
 * Source: NIST FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3 and 6.2.2.
 */

/** Fractional parts of the cube roots of the first 64 primes. */
const ROUND_CONSTANTS = new Int32Array([
  ...[0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5],
  ...[0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174],
  ...[0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da],
  ...[0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967],
  ...[0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85],
  ...[0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070],
  ...[0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3],
  ...[0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2],
]);

/** Fractional parts of the square roots of the first 8 primes. */
const INITIAL_STATE = [
  ...[0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a],
  ...[0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19],
];

const BLOCK_BYTES = 64;
const LENGTH_BYTES = 8;
const DIGEST_BYTES = 32;
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Core's use of `hash` of `node:crypto`. Half of a surrogate pair counts as U+FFFD, as there. */
export function hash(_algorithm: "sha256", text: string, _encoding: "base64url"): string {
  const message = paddedBytes(text);
  const state = new Int32Array(INITIAL_STATE);
  const schedule = new Int32Array(ROUND_CONSTANTS.length);
  for (let at = 0; at < message.byteLength; at += BLOCK_BYTES) addBlock(state, schedule, message, at);
  const digest = new DataView(new ArrayBuffer(DIGEST_BYTES));
  for (const [at, word] of state.entries()) digest.setInt32(4 * at, word);
  return base64url(new Uint8Array(digest.buffer));
}

/** The text's UTF-8 bytes, a one bit, zeros, and their length in bits, as whole blocks. */
function paddedBytes(text: string): DataView {
  const bytes = new TextEncoder().encode(text);
  const blocks = Math.ceil((bytes.length + 1 + LENGTH_BYTES) / BLOCK_BYTES);
  const padded = new Uint8Array(blocks * BLOCK_BYTES);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - LENGTH_BYTES, BigInt(bytes.length) * 8n);
  return view;
}

const rotate = (word: number, by: number) => (word >>> by) | (word << (32 - by));

function addBlock(state: Int32Array, schedule: Int32Array, message: DataView, from: number): void {
  const word = (at: number) => schedule[at] as number;
  for (let at = 0; at < 16; at++) schedule[at] = message.getInt32(from + 4 * at);
  for (let at = 16; at < schedule.length; at++) {
    const [early, late] = [word(at - 15), word(at - 2)];
    const first = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const second = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    schedule[at] = word(at - 16) + first + word(at - 7) + second;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let at = 0; at < schedule.length; at++) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const mixed =
      h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + (ROUND_CONSTANTS[at] as number) + word(at);
    const added = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + mixed) | 0, c, b, a, (mixed + added) | 0];
  }
  for (const [at, value] of [a, b, c, d, e, f, g, h].entries()) state[at] = (state[at] as number) + value;
}

/** Without padding (RFC 4648, section 5). */
function base64url(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at;
    const three = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let sextet = 0; sextet <= Math.min(left, 3); sextet++) text += BASE64URL[(three >> (18 - 6 * sextet)) & 63];
  }
  return text;
}
