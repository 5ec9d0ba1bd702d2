/** Token F1. STAND-IN until the scores' own branch is merged. */
export function tokenF1(answer: string, gold: string): number {
  const [a, g] = [words(answer), words(gold)];
  const left = [...g];
  const common = a.filter((word) => {
    const at = left.indexOf(word);
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  }).length;
  return common === 0 ? 0 : (2 * common) / (a.length + g.length);
}

function words(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}
