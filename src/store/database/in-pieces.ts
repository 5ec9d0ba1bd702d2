/** What one statement names at most; SQLite allows 32,766 parameters. */
const AT_ONCE = 500;

/** Does something for all of a list, so many at a time as one statement can name. */
export function inPieces<T>(all: readonly T[], work: (piece: T[]) => void): void {
  for (let at = 0; at < all.length; at += AT_ONCE) work(all.slice(at, at + AT_ONCE));
}
