// Owns: the noun. What a book is, and what may become one (rules 1 to 5 and 10).
// Imports nothing of ours, and knows neither HTTP nor a store.

/** What a client may say about a book. */
export interface BookFields {
  readonly title: string;
  readonly author: string;
  readonly year: number;
}

/** A stored book. Its key order is the order in which it is answered. */
export interface Book extends BookFields {
  readonly id: number;
}

/** The fields present in a body; the absent ones keep their values. */
export type BookChanges = Partial<BookFields>;

/** What a new book has where its body says nothing (rule 1). */
const ABSENT: BookFields = { title: '', author: '', year: 0 };

/** A whole new book's fields from those that were sent. */
export function completeFields(sent: BookChanges): BookFields {
  return { ...ABSENT, ...sent };
}

/**
 * Reads the book fields of a JSON object; keys of any other name, `id` included, are ignored (rule 5).
 * @returns undefined when a field is of the wrong type or value (rules 2 to 4).
 */
export function readBookChanges(body: Readonly<Record<string, unknown>>): BookChanges | undefined {
  const { title, author, year } = body;
  if (title !== undefined && !isText(title)) return undefined;
  if (author !== undefined && !isText(author)) return undefined;
  if (year !== undefined && !isYear(year)) return undefined;
  return {
    ...(title !== undefined && { title }),
    ...(author !== undefined && { author }),
    ...(year !== undefined && { year: year + 0 }), // -0 is stored as 0 (rule 3)
  };
}

/**
 * Reads a book's id as a path spells it: canonical decimal, at most 2^53−1 (rule 10).
 * @returns undefined when the text names no book.
 */
export function readBookId(text: string): number | undefined {
  if (!/^[1-9][0-9]{0,15}$/.test(text)) return undefined;
  const id = Number(text);
  return Number.isSafeInteger(id) ? id : undefined;
}

/** Any well-formed Unicode without NUL, which not every store can hold (rule 4). */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}

/** An integer that JSON numbers carry exactly, within ±(2^53−1) (rule 3). */
function isYear(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
