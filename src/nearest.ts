// Owns: the name that a mistyped one stands for.

/** @returns the first name that is one slip away: a letter too many, too few, another one, or two in the wrong order. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  return names.find((name) => isOneSlip(typed, name));
}

function isOneSlip(typed: string, name: string): boolean {
  const shorter = Math.min(typed.length, name.length);
  let start = 0;
  while (start < shorter && typed[start] === name[start]) start += 1;
  let end = 0;
  while (end < shorter - start && typed.at(-1 - end) === name.at(-1 - end)) end += 1;
  const [wrong, right] = [typed, name].map((text) => text.slice(start, text.length - end)) as [
    string,
    string,
  ];
  if (wrong.length <= 1 && right.length <= 1) return true;
  return wrong.length === 2 && right === `${wrong[1]}${wrong[0]}`;
}
