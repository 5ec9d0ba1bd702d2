/** Milliseconds between two samples. */
const EVERY_MS = 20;

/** Calls back with how late each sample of the event loop came, in milliseconds, until the function that it returns is called. */
export function sampleDelay(onDelay: (ms: number) => void): () => void {
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    onDelay(Math.max(0, now - last - EVERY_MS));
    last = now;
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}
