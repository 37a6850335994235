// Owns: mutants of what lets several programs change one catalogue: conditions, keys, and many books in one request.

import type { Mutant } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const CONDITIONS = 'test/contract/conditions.test.ts';
const ONCE = 'test/contract/once.test.ts';

export const TOGETHER_MUTANTS: readonly Mutant[] = [
  {
    name: 'the tag of a book does not depend on its author',
    file: 'src/books/condition.ts',
    from: "hash('sha256', text, 'base64url')",
    to: "hash('sha256', text.replace(/\"author\":.*,/, ''), 'base64url')",
    test: { file: CONTRACT, name: 'E1: every state', store: 'SQLite' },
  },
  {
    name: 'weak tags match in If-Match',
    file: 'src/api/conditions.ts',
    from: 'readTags(match, false)',
    to: 'readTags(match, true)',
    test: { file: CONTRACT, name: 'E3: a book is changed in the state', store: 'SQLite' },
  },
  {
    name: 'weak tags do not match in If-None-Match',
    file: 'src/api/conditions.ts',
    from: 'readTags(noneMatch, true)',
    to: 'readTags(noneMatch, false)',
    test: { file: CONTRACT, name: 'E2: ', store: 'SQLite' },
  },
  {
    name: 'an If-Match that cannot be read matches what is readable of it',
    file: 'src/api/conditions.ts',
    from: 'if (element === null) return [];',
    to: 'if (element === null) return tags;',
    test: { file: CONTRACT, name: 'E2: ', store: 'SQLite' },
  },
  {
    name: 'on SQLite, a change takes place whatever its condition',
    file: 'src/stores/sqlite/writer.ts',
    from: "if (!meets(book, condition)) return 'unmet';",
    to: '',
    test: { file: CONTRACT, name: 'E3: of 32', store: 'SQLite' },
  },
  {
    name: 'on PostgreSQL, a change takes place although the book has changed since its condition was tested',
    file: 'src/stores/postgres/books/conditional-changes.ts',
    from: 'where free.title = old_title and free.author = old_author and free.year = old_year',
    to: '',
    test: { file: CONDITIONS, name: 'E3: clients of two processes', store: 'PostgreSQL' },
  },
  {
    name: 'on PostgreSQL, a change on a condition is lost if the book has changed since it was tested',
    file: 'src/stores/postgres/books/conditional-changes.ts',
    from: 'for (const id of await this.#store(this.#connections, pool, columns, deadline)) changed.delete(id);',
    to: 'await this.store(pool, columns, deadline); changed.clear();',
    test: { file: CONDITIONS, name: 'E3: clients of two processes', store: 'PostgreSQL' },
  },
  {
    name: 'a condition is demanded of a book that does not exist',
    file: 'src/api/books.ts',
    from: 'return (await catalogue.find(id)) ? PRECONDITION_REQUIRED : BOOK_NOT_FOUND;',
    to: 'return id && catalogue ? PRECONDITION_REQUIRED : BOOK_NOT_FOUND;',
    test: { file: CONDITIONS, name: 'E4: ', store: 'SQLite' },
  },
  {
    name: 'a key of 256 characters is accepted',
    file: 'src/api/books.ts',
    from: '{1,255}',
    to: '{1,256}',
    test: { file: CONTRACT, name: 'I1: ', store: 'SQLite' },
  },
  {
    name: 'a key with its quotation marks is another one',
    file: 'src/api/books.ts',
    from: 'const key = /^"(.*)"$/.exec(text)?.[1] ?? text;',
    to: 'const key = text;',
    test: { file: CONTRACT, name: 'I2: the same request again', store: 'SQLite' },
  },
  {
    name: 'a book alone and the same book in an array are one request',
    file: 'src/books/catalogue.ts',
    from: "fingerprintOf('book', books)",
    to: "fingerprintOf('books', books)",
    test: { file: CONTRACT, name: 'I2: the same request again', store: 'SQLite' },
  },
  {
    name: 'on SQLite, a key is known for longer than it lives',
    file: 'src/stores/sqlite/writer.ts',
    from: 'this.#findKey.get(once.key, time - KEY_LIFETIME)',
    to: 'this.#findKey.get(once.key, 0)',
    test: { file: ONCE, name: 'I4: ', store: 'SQLite' },
  },
  {
    name: 'on PostgreSQL, a key is known for longer than it lives',
    file: 'src/stores/postgres/books/new-books.ts',
    from: 'made_at > now() -',
    to: 'now() > now() -',
    test: { file: ONCE, name: 'I4: ', store: 'PostgreSQL' },
  },
  {
    name: 'expired keys are never removed',
    file: 'src/stores/sqlite/writer.ts',
    from: 'this.#expireKeys(time);',
    to: '',
    test: { file: ONCE, name: 'I4: ', store: 'SQLite' },
  },
  {
    name: 'on PostgreSQL, a call whose key another one has used is refused, even if both are equal',
    file: 'src/stores/postgres/books/new-books.ts',
    from: "if (group.once?.fingerprint !== fingerprint) return 'conflict';",
    to: "if (group !== by && group.once !== undefined) return 'conflict';",
    test: { file: ONCE, name: 'I3: of many', store: 'PostgreSQL' },
  },
  {
    name: '10,001 books are stored by one request',
    file: 'src/api/book-array.ts',
    from: 'const MOST_BOOKS = 10_000;',
    to: 'const MOST_BOOKS = 10_001;',
    test: { file: CONTRACT, name: 'B1: 10,000', store: 'SQLite' },
  },
  {
    name: 'an object is taken for an array of its values',
    file: 'src/api/book-array.ts',
    from: 'new ArraySplitter(false)',
    to: 'new ArraySplitter(true)',
    test: { file: CONTRACT, name: 'B2: a body that is not an array', store: 'SQLite' },
  },
  {
    name: 'many books may have a byte more than BULK_LIMIT',
    file: 'src/http/body.ts',
    from: 'if (Number(contentLength) > room.limit) throw new BodyTooLarge();\n  let length = 0;',
    to: 'let length = -1;',
    test: { file: ONCE, name: 'B1: BODY_LIMIT', store: 'SQLite' },
  },
];
