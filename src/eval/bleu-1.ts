/** BLEU-1. STAND-IN until the scores' own branch is merged. */
export function bleu1(answer: string, gold: string): number {
  const a = answer.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const g: string[] = gold.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  if (a.length === 0) return 0;
  const left = [...g];
  const common = a.filter((word) => {
    const at = left.indexOf(word);
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  }).length;
  return (common / a.length) * (a.length >= g.length ? 1 : Math.exp(1 - g.length / a.length));
}
