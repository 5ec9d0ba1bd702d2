/** A q8_0 block: a half-precision scale, then 32 signed bytes. */
const BLOCK = 34;
/** Two blocks are a whole number of 32-bit words. */
const PIECE = 2 * BLOCK * 8_192;
/** The deviation of evenly drawn signed bytes. */
const BYTE_DEVIATION = 73.9;
const HALF_EXPONENT_BIAS = 15;
const HALF_FRACTION_BITS = 10;

/**
 * So many bytes of q8_0 blocks with random weights of about the given standard deviation, the same ones for the same seed. Every piece
 * is the same memory, filled again. The scale is a power of two, so the deviation may be off by a factor of up to √2.
 */
export function* randomBlocks(bytes: number, deviation: number, seed: number): Generator<Uint8Array> {
  if (bytes % BLOCK !== 0) throw new RangeError(`${bytes} bytes are no whole number of q8_0 blocks`);
  const exponent = Math.round(Math.log2(deviation / BYTE_DEVIATION));
  const scale = (exponent + HALF_EXPONENT_BIAS) << HALF_FRACTION_BITS;
  const words = new Uint32Array(PIECE / 4);
  const piece = new Uint8Array(words.buffer);
  let state = seed | 0 || 1;
  for (let left = bytes; left > 0; left -= PIECE) {
    for (let at = 0; at < words.length; at++) {
      // xorshift32: plain, and fast enough to be no part of the writing time.
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      words[at] = state;
    }
    for (let at = 0; at < piece.length; at += BLOCK) {
      piece[at] = scale & 0xff;
      piece[at + 1] = scale >>> 8;
    }
    yield left < PIECE ? piece.subarray(0, left) : piece;
  }
}
