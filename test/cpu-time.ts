/**
 * Milliseconds of CPU time that this process takes for some work. A busy machine makes it hardly longer, so that what takes minutes on an
 * idle one can be told from what takes no time.
 */
export function cpuTimer(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
}
