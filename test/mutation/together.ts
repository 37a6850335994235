// Owns: mutants of what lets several programs change one catalogue: conditions, keys, and many books in one request.

import { Mutants } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const NIGHTLY_CONTRACT = 'test/nightly/contract.test.ts';
const TOGETHER = 'test/contract/together.test.ts';
const ROOM = 'test/api/room.test.ts';

export const TOGETHER_MUTANTS = new Mutants()
  .in('src/books/condition.ts')
  .mutant('the tag of a book does not depend on its author', CONTRACT, 'E1: every state')
  .change(
    "hash('sha256', text, 'base64url')",
    "hash('sha256', text.replace(/\"author\":.*,/, ''), 'base64url')",
  )
  .in('src/api/conditions.ts')
  .mutant('weak tags match in If-Match', CONTRACT, 'E3: a book is changed in the state')
  .change('readTags(match, false)', 'readTags(match, true)')
  .mutant('weak tags do not match in If-None-Match', CONTRACT, 'E2: ')
  .change('readTags(noneMatch, true)', 'readTags(noneMatch, false)')
  .mutant('an If-Match that cannot be read matches what is readable of it', CONTRACT, 'E2: ')
  .change('if (element === null) return [];', 'if (element === null) return tags;')
  .mutant('what proxies add to a tag counts', CONTRACT, 'E3: a tag counts without')
  .change('br|zstd', 'zstd')
  .mutant('a tag that ends like what a proxy adds matches nothing', TOGETHER, 'E3: a tag may itself')
  .change('([\\w-]{22})', '([\\w-]+?)')
  .in('src/stores/sqlite/writes.ts')
  .mutant('on SQLite, a change takes place whatever its condition', CONTRACT, 'E3: of 32')
  .change("if (!meets(book, condition)) return 'unmet';", '')
  .mutant('on SQLite, a key is known for longer than it lives', TOGETHER, 'I4: ')
  .change('made_at < unixepoch() * 1000 -', 'made_at < unixepoch() * 1000 - 2 *')
  .mutant('on SQLite, a key is removed before it is a day old', TOGETHER, 'I4: ')
  .change('made_at < unixepoch() * 1000 -', 'made_at < unixepoch() * 1000 - 0 *')
  .mutant('on SQLite, a key is removed although only 9,999 are newer', TOGETHER, 'I4: ')
  .change('(select max(rowid) from book_requests)', '(select max(rowid) + 1 from book_requests)')
  .in('src/stores/postgres/statements.ts')
  .mutant(
    'on PostgreSQL, a change takes place although the book has changed since its condition was tested',
    TOGETHER,
    'E3: clients of two processes',
  )
  .change("before('update')", "before('key share')")
  .in('src/api/books.ts')
  .mutant('a condition is demanded of a book that does not exist', TOGETHER, 'E4: ')
  .change(
    'return (await catalogue.find(id)) ? answers.PRECONDITION_REQUIRED : answers.BOOK_NOT_FOUND;',
    'return id && catalogue ? answers.PRECONDITION_REQUIRED : answers.BOOK_NOT_FOUND;',
  )
  .in('src/api/conditions.ts')
  .mutant('a key of 256 characters is accepted', CONTRACT, 'I1: ')
  .change('{1,255}', '{1,256}')
  .mutant('a key with its quotation marks is another one', CONTRACT, 'I2: the same request again')
  .change('const key = /^"(.*)"$/.exec(text)?.[1] ?? text;', 'const key = text;')
  .in('src/books/catalogue.ts')
  .mutant(
    'a book alone and the same book in an array are one request',
    CONTRACT,
    'I2: the same request again',
  )
  .change("fingerprintOf('book', books)", "fingerprintOf('books', books)")
  .mutant('the keys of earlier versions are unknown', TOGETHER, 'I2: the keys that an earlier version')
  .change('[title, author, year]', '[year, title, author]')
  .in('src/stores/postgres/new-books.ts')
  .mutant('on PostgreSQL, a key is known for longer than it lives', TOGETHER, 'I4: ')
  .change("where made_at < now() - interval '", "where made_at < now() - 2 * interval '")
  .mutant('on PostgreSQL, a key is removed before it is a day old', TOGETHER, 'I4: ')
  .change("where made_at < now() - interval '", "where made_at < now() - 0 * interval '")
  .mutant('on PostgreSQL, a key is removed although only 9,999 are newer', TOGETHER, 'I4: ')
  .change('order by made_at desc offset', 'order by made_at desc offset -1 +')
  .mutant('on PostgreSQL, a process removes keys only once', TOGETHER, 'I4: ')
  .change('this.#untilRemoval = REMOVAL_PACE;', '')
  .mutant(
    'on PostgreSQL, a call whose key another one has used is refused, even if both are equal',
    TOGETHER,
    'I3: of many',
  )
  .change(
    "if (fingerprint !== (group.once?.fingerprint ?? null)) return 'conflict';",
    "if (!isNew || group !== firsts.get(keyOf(group))) return 'conflict';",
  )
  .in('src/api/book-array.ts')
  .mutant('10,001 books are stored by one request', NIGHTLY_CONTRACT, 'B1: 10,000')
  .change('const MOST_BOOKS = 10_000;', 'const MOST_BOOKS = 10_001;')
  .mutant('a book of an array may have texts of any length', TOGETHER, 'B1: BODY_LIMIT')
  .change('lengthOf(book) > longest', 'lengthOf(book) < 0')
  .in('src/api/books.ts')
  .mutant('many books may have a byte more than BULK_LIMIT', TOGETHER, 'B1: BODY_LIMIT')
  .change(
    'readBody(exchange.request, config.bulkLimit, room)',
    'readBody(exchange.request, config.bulkLimit + 1, room)',
  )
  .mutant('arrays that are not stored yet take any amount of memory', ROOM, 'four times its length')
  .change('room.take(body.length);', '').all;
