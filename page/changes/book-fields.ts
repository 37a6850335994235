// Owns: the texts that a person may write into the fields of a book, and the reasons against others.

import type { NewBook } from '../../client/src/book.ts';
import { type BookFields, readBookChanges, TEXT_NAMES } from '../../src/books/book.ts';
import { because, sentenceOf } from '../../src/files/reasons.ts';
import { readYear } from '../../src/files/years.ts';
import { type Field, trimmed } from '../elements/text.ts';
import { CHANGES } from '../texts/changes.ts';

export type ReadFields = { readonly fields: NewBook } | { readonly field: Field; readonly reason: string };

/**
 * Reads the texts of some fields. A year is written as in files that are imported: `1605`, `c1963`, `750 BC`, or nothing. A title has at
 * least one letter or sign that can be seen.
 * @returns the values, or the first text that cannot be stored, with the reason.
 */
export function readFields(texts: Partial<Record<Field, string>>): ReadFields {
  const fields: { -readonly [Name in Field]?: BookFields[Name] } = {};
  for (const field of TEXT_NAMES) {
    if (texts[field] === undefined) continue;
    const text = trimmed(texts[field]);
    if (field === 'title' && text === '') return { field, reason: CHANGES.noTitle };
    if (readBookChanges({ [field]: text }) === undefined) return { field, reason: CHANGES.unstorable };
    fields[field] = text;
  }
  if (texts.year !== undefined) {
    const year = readYear(texts.year);
    if (typeof year === 'string')
      return { field: 'year', reason: CHANGES.noYear(texts.year.trim(), sentenceOf(because(year))) };
    fields.year = year;
  }
  return { fields };
}
