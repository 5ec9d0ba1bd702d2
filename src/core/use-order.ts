/** Something that stands in a list by when it was used last, the freshest first. */
export interface Used<T> {
  fresher: T | null;
  staler: T | null;
}

/** Puts an item right behind a fresher one, from wherever it stood; in constant time, as it is done for all that a request uses. */
export function placeBehind<T extends Used<T>>(item: T, fresher: T): void {
  if (fresher.staler === item) return;
  takeOut(item);
  item.fresher = fresher;
  item.staler = fresher.staler;
  if (item.staler !== null) item.staler.fresher = item;
  fresher.staler = item;
}

export function takeOut<T extends Used<T>>(item: T): void {
  if (item.fresher !== null) item.fresher.staler = item.staler;
  if (item.staler !== null) item.staler.fresher = item.fresher;
  item.fresher = null;
  item.staler = null;
}
