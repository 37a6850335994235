// Owns: all books of PostgreSQL as text, made by PostgreSQL itself. Twin of `sqlite/text.ts`.

import { COLUMNS, ID_AND_FIELDS } from '../columns.ts';

export const AS_CSV = `
  copy (select ${ID_AND_FIELDS} from books order by id)
  to stdout with (format csv, force_quote (${COLUMNS.filter(({ isText }) => isText).map(({ name }) => name)}), encoding 'UTF8')`;

/**
 * A JSON object a line. JSON text leaves no control character unescaped, so with these two as delimiter and quote, CSV
 * passes every line through as it is. `offset 0` puts the books in order before their text is built: sorted afterwards,
 * long texts would go through the disk.
 * @param before what each line begins with.
 */
export function asJson(before: ',' | ''): string {
  const fields = COLUMNS.map(({ name, isText }) => `',"${name}":' || ${isText ? `to_json(${name})` : name}`);
  return `
    copy (
      select '${before}{"id":' || id || ${fields.join(' || ')} || '}'
      from (select ${ID_AND_FIELDS} from books order by id offset 0) as books
    ) to stdout with (format csv, delimiter E'\\x01', quote E'\\x02', encoding 'UTF8')`;
}
