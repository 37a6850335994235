// Owns: a name and its meaning, as lines of a help text.

/** Widths in characters: a line of the meaning, and the name before it. */
const MEANING_WIDTH = 72;
const NAME_WIDTH = 23;

/** @param meaning in Markdown. */
export function helpEntry(name: string, meaning: string): string {
  const lines = [''];
  for (const word of meaning.replaceAll('`', '').split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (longer.length > MEANING_WIDTH) lines.push(` ${word}`);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line, index) => `  ${(index === 0 ? name : '').padEnd(NAME_WIDTH)}${line}\n`).join('');
}
