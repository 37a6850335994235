// Owns: showing text of arguments, files and variables on a terminal.

/** Escapes the characters that would control the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** Prints a line for a person; nothing in it controls the terminal, such as the name of a file. */
export function writeLine(output: Pick<NodeJS.WriteStream, 'write'>, line: string): void {
  output.write(`${printable(line)}\n`);
}
