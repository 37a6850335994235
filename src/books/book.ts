// Owns: what a book is, and which input may become one (rules 1 to 5 and 10).
// Independent of HTTP and of stores.

/**
 * Any well-formed Unicode without NUL, which not every store can hold (rule 4). JSON Schema has no keyword for it, and
 * the regular expressions of several languages do not support a pattern for it.
 */
const TEXT = { type: 'string', format: 'well-formed-text', default: '' } as const;

/** The fields of a book as JSON Schemas, with their types, their defaults in a new book (rule 1) and their
 * descriptions. */
export const BOOK_FIELDS = {
  title: {
    ...TEXT,
    description:
      'Any well-formed Unicode text without NUL (U+0000). It is returned code point for code point.',
    examples: ['Don Quijote'],
  },
  author: {
    ...TEXT,
    description: 'Any well-formed Unicode text without NUL (U+0000), as for `title`.',
    examples: ['Miguel de Cervantes'],
  },
  year: {
    type: 'integer',
    minimum: Number.MIN_SAFE_INTEGER, // within these bounds, JSON numbers are exact (rule 3)
    maximum: Number.MAX_SAFE_INTEGER,
    default: 0,
    description:
      'Any whole number within ±(2^53−1), including `2020.0` and `2.02e3`; it is never rounded. Years before ' +
      'the common era may be negative.',
    examples: [1605],
  },
} as const;

/** The id of a book (rules 10 and 12). */
export const BOOK_ID = {
  type: 'integer',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Assigned by the service, and never assigned twice.',
  examples: [1],
} as const;

/**
 * The highest id that a file may have: new books get theirs after the highest one up to here (rule 12). A store may have books
 * beyond it, of another program or of a build before version 1.1.
 */
export const LAST_SEQUENTIAL_ID = 2 ** 52;

/** The fields of a book that a client may set. */
export type BookFields = {
  readonly [Name in keyof typeof BOOK_FIELDS]: (typeof BOOK_FIELDS)[Name] extends { type: 'string' }
    ? string
    : number;
};

/** A stored book. Its keys have the order of the answers. */
export interface Book extends BookFields {
  readonly id: number;
}

/** The fields present in a body; the absent ones keep their values. */
export type BookChanges = Partial<BookFields>;

/** The names of the fields, in the order of answers and files. */
export const FIELD_NAMES = Object.keys(BOOK_FIELDS) as readonly (keyof BookFields)[];

export type TextName = keyof { [Key in keyof BookFields as BookFields[Key] extends string ? Key : never]: 0 };

export const TEXT_NAMES = FIELD_NAMES.filter((name): name is TextName => BOOK_FIELDS[name].type === 'string');

const ABSENT = Object.fromEntries(
  FIELD_NAMES.map((name) => [name, BOOK_FIELDS[name].default]),
) as unknown as BookFields;

/** Whether two books are equal except for their ids. */
export function isSameBook(one: BookFields, other: BookFields): boolean {
  return FIELD_NAMES.every((name) => one[name] === other[name]);
}

/** The values of the fields, in their order. */
export const valuesOf = <Of extends Partial<Record<keyof BookFields, unknown>>>(fields: Of) =>
  FIELD_NAMES.map((name) => fields[name]);

/** The book with these values: the id, and those of the fields in their order. */
export function bookWith(values: readonly unknown[]): Book {
  const book: Record<string, unknown> = { id: values[0] };
  let position = 0;
  for (const name of FIELD_NAMES) book[name] = values[++position];
  return book as unknown as Book;
}

/** All fields of a new book: those that were sent, and the defaults of the others. */
export function completeFields(sent: BookChanges): BookFields {
  return { ...ABSENT, ...sent };
}

/**
 * Reads the book fields of a JSON object; keys of any other name, `id` included, are ignored (rule 5).
 * @returns undefined if a field has the wrong type or value (rules 2 to 4).
 */
export function readBookChanges(body: Readonly<Record<string, unknown>>): BookChanges | undefined {
  const changes: Record<string, unknown> = {};
  for (const name of FIELD_NAMES) {
    const value = body[name];
    if (value === undefined) continue;
    if (BOOK_FIELDS[name].type === 'string' ? !isText(value) : !Number.isSafeInteger(value)) return undefined;
    changes[name] = value === 0 ? 0 : value; // -0 is stored as 0 (rule 3)
  }
  return changes;
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}

/**
 * Reads a book's id as a path spells it: canonical decimal, at most 2^53−1 (rule 10).
 * @returns undefined if the text cannot be the id of a book.
 */
export function readBookId(text: string): number | undefined {
  if (!/^[1-9][0-9]{0,15}$/.test(text)) return undefined;
  const id = Number(text);
  return id <= BOOK_ID.maximum ? id : undefined;
}
