// Owns: a number with the word for what is counted.

/** @returns such as `1 book` or `2467 books`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}
