// Owns: mutants of finding books: words, parameters, pages, and the index that follows.

import { Mutants } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const WORDS = 'test/find/words.test.ts';
const PAGES = 'test/find/pages.test.ts';
const INDEX = 'test/find/index.test.ts';
const SQLITE = 'test/stores/sqlite.test.ts';
const NIGHTLY_INDEX = 'test/nightly/index.test.ts';
const NIGHTLY_ORACLE = 'test/nightly/oracle.test.ts';

export const FIND_MUTANTS = new Mutants()
  .in('src/books/folding.ts')
  .mutant('accents count', WORDS, 'rquez')
  .change(".replace(MARKS, '')", '')
  .mutant('an ayn is a letter', WORDS, 'Abd')
  .change('"\'": APOSTROPHES.replace("\'", \'\'),', '')
  .mutant('a Persian keyboard finds no Arabic', WORDS, 'علي')
  .change("ي: 'ىیۍێېۑ',", '')
  .mutant('the digits of each script are others', WORDS, 'ปี')
  .change('[\\\\p{Nd}--[0-9]]', '')
  .mutant('a gap within an Arabic word is nothing', WORDS, 'ها')
  .change("if (folded.includes('\\u200c'))", 'if (false)')
  .mutant('a sign of iteration is a letter', WORDS, 'こゝろ')
  .change('if (ITERATION.test(folded))', 'if (false)')
  .mutant('a Latin letter in a Cyrillic word stays Latin', WORDS, 'кiт')
  .change('folded.replace(LATIN, cyrillic)', 'folded')
  .mutant('a palochka that is typed as 1 is a digit', WORDS, 'ГӀалгӀай')
  .change(".replace(PALOCHKA, 'і')", '')
  .mutant('a Latin word with a Cyrillic ending becomes Cyrillic', WORDS, 'Webом')
  .change('(?<![a-z])', '(?<![abcehijkmopstxy])')
  .mutant('marks that look the same in each order differ', WORDS, 'น้ำใจ')
  .change('...STACKS,', '')
  .mutant('a wide hyphen after kana is a sign', WORDS, 'コーヒー')
  .change("'ー'.repeat(found.length)", 'found')
  .mutant('a nasal is written in one way', WORDS, 'हिन्दी गङ्गा')
  .change('FOLDED.set(pattern.replace(', 'new Map().set(pattern.replace(')
  .mutant('a trade mark is nothing', WORDS, '"?"')
  .change('SIGN[found] ??', '')
  .mutant('an accent typed after its letter splits the word', WORDS, 'François')
  .change('WITHIN_WORD.test(around)', 'false')
  .in('src/books/words.ts')
  .mutant('a name is only found with the sign between its parts', WORDS, 'ガルシア')
  .change('|| isNamePart', '')
  .mutant('a search for an accent finds every book', WORDS, 'Emma')
  .change("folded.trim() === '' ?", 'false ?')
  .mutant('a quotation mark never stands for a gershayim', WORDS, 'צה')
  .change(`const WITHIN_WORD = /['"]+/;`, "const WITHIN_WORD = /'+/;")
  .mutant('initials stay apart', WORDS, 'J.R.R.')
  .change('(isInitial && follows) ||', '')
  .mutant('characters of Chinese are no words', WORDS, '百年孤独')
  .change('words.add(point);', '')
  .in('src/api/query.ts')
  .mutant('with FIND=off a query without parameters is a search', PAGES, 'FIND=off')
  .change('if (!find) return invalid(parts[0]);', 'if (!find && parts.length > 0) return invalid(parts[0]);')
  .mutant('a parameter may be sent twice', CONTRACT, 'an invalid parameter gets 400')
  .change('!parameters.has(name) &&', '')
  .mutant('a cursor of another order is accepted', CONTRACT, 'a cursor is valid with its own order')
  .change(' && cursorOf(place as Place, order) === text', '')
  .mutant('links may have any length', PAGES, 'links are left out')
  .change('const LONGEST_LINKS = 8 * 1024;', 'const LONGEST_LINKS = 8 * 1024 * 1024;')
  .mutant('a search never says that books are left out', INDEX, 'and says so')
  .change('if (unindexed > 0)', 'if (false)')
  .in('src/books/search.ts')
  .mutant('a search may have 17 words', CONTRACT, 'an invalid parameter gets 400')
  .change('const MOST_WORDS = 16;', 'const MOST_WORDS = 17;')
  .in('src/stores/search-sql.ts')
  .mutant('a page may have any size', PAGES, 'a page ends before 1 MiB', 'PostgreSQL')
  .change('const PAGE_BYTES = 1024 * 1024;', 'const PAGE_BYTES = 1024 * 1024 * 1024;')
  .in('src/stores/finding.ts')
  .mutant('books that are far away are not found', NIGHTLY_ORACLE, 'find many books', 'PostgreSQL')
  .change('rows.length < needed ? this.#collectAll(selection, part) :', '')
  .mutant('the order by relevance begins again on each page', NIGHTLY_ORACLE, 'find many books')
  .change('first === 1 ? [key, id] :', '')
  .in('src/stores/sqlite/store.ts')
  .mutant('on SQLite, short searches wait for long ones', SQLITE, 'no short search waits')
  .change('await this.#startLongFinder()', 'finder')
  .mutant('a long search miscounts the books that are not indexed', INDEX, 'while the index cannot follow')
  .change('mode: found }', 'mode: { unindexed: 2 * found.unindexed } }')
  .in('src/stores/sqlite/finder.ts')
  .mutant('on SQLite, a search that is not short fails', SQLITE, 'no short search waits')
  .change("error.kind === 'late') return { unindexed };", "error.kind === 'overload') return { unindexed };")
  .mutant('a search on SQLite does not wait for the index', INDEX, 'another service has answered')
  .change('while (since >= this.#freshAt)', 'while (false)')
  .mutant(
    'on SQLite, each search waits a second for the same lock',
    NIGHTLY_INDEX,
    'the searches of many clients',
  )
  .change('Math.min(end, this.#blockedSince + catchUp)', 'end')
  .in('src/stores/postgres/finding/finder.ts')
  .mutant('a search on PostgreSQL reads an index of another version', INDEX, 'which is left alone')
  .change('if (!state.isComplete || state.version !== INDEX_VERSION) {', 'if (!state.isComplete) {')
  .mutant('a search on PostgreSQL does not wait for the index', INDEX, 'another service has answered')
  .change('if (state.notes.length === 0) return', 'if (true) return')
  .mutant(
    'on PostgreSQL, each search waits a second for the same lock',
    NIGHTLY_INDEX,
    'the searches of many clients',
  )
  .change('Math.min(end, this.#indexingSince + catchUp)', 'end')
  .in('src/stores/sqlite/book-index.ts')
  .mutant('a book with a new id above all others is indexed twice', INDEX, 'books that other programs write')
  .change('select new.id where new.id <= (select indexed_to from book_index_state);', 'select new.id;')
  .mutant('a search on SQLite reads an index of another version', INDEX, 'which is left alone')
  .change('return version === INDEX_VERSION && isComplete === 1;', 'return isComplete === 1;')
  .mutant('an index on SQLite is used whose triggers or tables are missing', INDEX, 'a part of it is missing')
  .change('if (this.#missing([...TABLES, ...TRIGGERS]).length > 0) return false;', '')
  .mutant('an index on SQLite is used that a newer version has made', INDEX, 'another version')
  .change(
    'return version === INDEX_VERSION && (isComplete',
    'return Number(version) >= INDEX_VERSION && (isComplete',
  )
  .in('src/stores/sqlite/structure.ts')
  .mutant('triggers without their table make a store unusable', INDEX, 'a part of it is missing')
  .change('db.exec(`drop trigger', 'String(`drop trigger')
  .in('src/stores/postgres/finding/book-index.ts')
  .mutant('an index on PostgreSQL is used that lacks a sorted part', INDEX, 'a part of it is missing')
  .change('(books?.isSorted || !state.isComplete)', 'true')
  .mutant('an index on PostgreSQL is used whose trigger is disabled', INDEX, 'a part of it is missing')
  .change("and tgenabled in ('O', 'A')", '')
  .mutant('an index on PostgreSQL is used that a newer version has made', INDEX, 'another version')
  .change('state?.version === INDEX_VERSION', 'Number(state?.version) >= INDEX_VERSION')
  .mutant('books that truncate has removed are found', INDEX, 'truncate has removed')
  .change("book_index_on_truncate: 'after truncate on books for each statement',", '')
  .mutant('the old ids of books are found', INDEX, 'books that other programs write')
  .change(
    "book_index_on_new_id: 'after update of id on books for each row when (old.id <> new.id)',",
    '',
  ).all;
