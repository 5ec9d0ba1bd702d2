/**
 * A body of a record, or a snapshot, is not what this store writes. The message quotes nothing of it; whoever reads adds the scope and the
 * record.
 */
export class DamagedRecordError extends Error {
  override readonly name = "DamagedRecordError";
}

/** The format of snapshots, changes and what records say; the first element of each. A new one is another number, and this one stays readable. */
export const FORMAT = 1;

/**
 * Unpacks a body. Its checksum was compared when it was read, so its shape is what this store wrote: only its format is compared. Parsed
 * values are kept and not copied: messages and plans keep the order of their fields, in which they may be sent again.
 *
 * @param what names the body in errors
 */
export function unpackedBody<Packed extends readonly [typeof FORMAT, ...unknown[]], T>(
  what: string,
  text: string,
  unpack: (packed: Packed) => T,
): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text.
    throw new DamagedRecordError(`${what}: not valid JSON`);
  }
  if (!Array.isArray(value) || value[0] !== FORMAT) throw new DamagedRecordError(`${what}: not of format ${FORMAT}`);
  try {
    return unpack(value as unknown as Packed);
  } catch {
    throw new DamagedRecordError(`${what}: not as it is written`);
  }
}
