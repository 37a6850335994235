// Owns: mutants of the commands that process all books, of the client, and of the test runner.

import { Mutants } from './mutant.ts';

const FOR_EXCEL = 'test/page/export.test.ts';
const EXPORT = 'test/transfer/export.test.ts';
const MEMORY = 'test/nightly/memory.test.ts';
const PERMISSIONS = 'test/process/permissions.test.ts';
const BACKUP = 'test/transfer/backup.test.ts';
const BULK = 'test/stores/bulk.test.ts';
const IMPORT = 'test/transfer/import.test.ts';
const READING = 'test/transfer/reading.test.ts';
const FORMATS = 'test/transfer/formats.test.ts';
const FOREIGN = 'test/transfer/foreign.test.ts';
const RUNNING = 'test/transfer/running.test.ts';
const CLIENT = 'test/client/service.test.ts';
const ANSWERS = 'test/client/answers.test.ts';
const LISTS = 'test/client/lists.test.ts';
const IMPORTS = 'test/project/imports.test.ts';
const RUN = 'test/project/run.test.ts';
const FUZZ = 'test/fuzz/fuzz.test.ts';

export const TRANSFER_MUTANTS = new Mutants()
  .in('src/commands/copy.ts')
  .mutant('a store is copied to itself by another path', EXPORT, 'wrong operand')
  .change('fromAt.file === toAt.file', 'false')
  .mutant('a copy between two stores of PostgreSQL loads node:sqlite', IMPORTS, 'only for a store of SQLite')
  .change(
    'import { Checksum, checksumOf }',
    "import '../stores/sqlite/backup.ts';\nimport { Checksum, checksumOf }",
  )
  .mutant('a copy succeeds without a comparison of both stores', EXPORT, 'alters or drops a book')
  .change(
    '(await target.count()) !== books || (await checksumOf(target)) !== checksum',
    '(await target.count()) < 0',
  )
  .mutant(
    'a copy succeeds if only its number of books is right',
    EXPORT,
    'alters or drops a book',
    'PostgreSQL',
  )
  .change(' || (await checksumOf(target)) !== checksum', '')
  .mutant('a copy takes books from TO without --overwrite', EXPORT, 'over books only with --overwrite')
  .change('if (there > 0 && !overwrite) {', 'if (there < 0 && !overwrite) {')
  .mutant('a copy continues after a signal', RUNNING, 'a signal ends backup, restore and copy')
  .change('context.signal.throwIfAborted();', '')
  .mutant('an id that was given before a copy is given again', EXPORT, 'from SQLite to SQLite, ids included')
  .change('await target.reserveIdsThrough(await source.lastId());', '')
  .mutant('a copy holds all books in memory', MEMORY, 'copy from SQLite')
  .change(
    'read.addBooks(batch);',
    'read.addBooks(batch); ((globalThis as { held?: unknown[] }).held ??= []).push(batch);',
  )
  .in('src/stores/columns.ts')
  .mutant('a book without an author is missing in an export', EXPORT, 'before its first start')
  .change('(({ name, absent }) => `coalesce', '(({ name, absent }) => true ? name : `coalesce')
  .in('src/stores/sqlite/text.ts')
  .mutant('quotes in a text are not doubled in an export', EXPORT, 'byte for byte the same')
  .change("'\"', '\"\"'", "'\"', '\"'")
  .in('src/stores/postgres/hosts.ts')
  .mutant('the password comes from the URL alone', EXPORT, 'PGPASSWORD')
  .change(
    'url.searchParams.delete(PARAMETER);',
    "url.searchParams.delete(PARAMETER); url.password ||= 'none';",
  )
  .in('src/stores/sqlite/backup.ts')
  .mutant('a backup gets its name without a comparison with the store', BACKUP, 'fails where it differs')
  .change(
    "if (content.checksum !== original.checksum) throw new Error('the copy differs from the store');",
    '',
  )
  .mutant('a backup shows several moments of a store', BACKUP, 'shows one moment')
  .change("'begin; select 1 from books limit 1'", "'begin'")
  .mutant('a backup keeps the log from being emptied while it checks the copy', BACKUP, 'shows one moment')
  .change("source.exec('rollback');", '')
  .mutant('nothing shows that an empty file has been replaced', BACKUP, 'store that is replaced')
  .change('begin exclusive; commit; begin exclusive', 'begin exclusive')
  .mutant('a start waits for those who read a restored store', BACKUP, 'never while a service runs')
  .change(
    'return await contentOf(copy, onProgress);',
    "const content = await contentOf(copy, onProgress); copy.exec('pragma journal_mode = delete'); return content;",
  )
  .mutant('a restore through a link ignores the log of the backup', BACKUP, 'that is impossible')
  .change('companionsOf(finalPath(path))', 'companionsOf(path)')
  .in('src/final-path.ts')
  .mutant('a link to nothing is followed, though a disk may not be mounted', BACKUP, 'that is impossible')
  .change('if (isMissing && ', 'if (!isMissing && ')
  .in('src/terminal/whole-file.ts')
  .mutant('files that a killed backup has left stay', BACKUP, 'what killed ones have left')
  .change('if (!found.startsWith(name) || ', 'if (found.startsWith(name) || ')
  .mutant('an export that replaces a private file is readable by everybody', EXPORT, 'keeps its permissions')
  .change('0o600 | (like.mode & (isOfGroup ? 0o066 : 0o006))', '0o644')
  .mutant('an export replaces a file that appears while it runs', EXPORT, 'appears meanwhile')
  .change('assertFree(path, overwrite);\n    renameSync', 'renameSync')
  .mutant('success is reported before the name of a file is on disk', EXPORT, 'cannot be synced')
  .change('await sync(folder);', '')
  .mutant('a backup replaces a store that is started at its place', BACKUP, 'started at its place')
  .change('if (companion === undefined) return;', 'return;')
  .mutant('a restored store has the permissions of its backup', PERMISSIONS, 'for their user only')
  .change('mode: 0o600 }', 'mode: 0o644 }')
  .in('src/commands/backup.ts')
  .mutant('a backup replaces its store through a link', BACKUP, 'that is impossible')
  .change('finalPath(file) === store', 'file === store')
  .in('src/commands/import.ts')
  .mutant('a dry run needs space outside of the folder of the store', RUNNING, 'beside the store')
  .change(
    'const store = options.isDryRun',
    'if (options.isDryRun) await openScratch();\n    const store = options.isDryRun',
  )
  .in('src/commands/restore.ts')
  .mutant('a service begins on a store while it is replaced', BACKUP, 'store that is replaced')
  .change('lock(store, url) : undefined', 'undefined : undefined')
  .mutant('a restore replaces books without --overwrite', BACKUP, 'never while a service runs')
  .change('= options.overwrite === true;', '= true;')
  .in('src/process.ts')
  .mutant('a command ends before its messages are read', RUNNING, 'all its messages arrive')
  .change('await Promise.race([untilRead(process.stderr), overdue]);', '')
  .mutant('a command waits for its reader after a signal', RUNNING, 'although nobody reads')
  .change('const overdue = stop.then(() => setTimeout(farewell));', 'const overdue = new Promise(() => {});')
  .in('src/import/report.ts')
  .mutant('messages of an import pile up in memory', RUNNING, 'few pile up')
  .change('if (stderr.writableLength > MESSAGE_BACKLOG)', 'if (false)')
  .in('src/import/rejects.ts')
  .mutant('an array of rejected rows has no end on a full disk', READING, 'also if the disk is full')
  .change('await handle.appendFile(after);', '')
  .mutant('rejected rows for the standard output go to a file named -', IMPORT, 'go to the standard output')
  .change("path === '-' ? output", "path === '' ? output")
  .in('src/import/alike.ts')
  .mutant('books that are the same to the eye are not compared with the catalogue', IMPORT, 'same to the eye')
  .change('for (const book of books) this.add(book);', '{}')
  .mutant('a book that is there already is taken for another one', IMPORT, 'same to the eye')
  .change('isThere && this.#exact[place] !== exact', 'isThere')
  .in('src/import/importing.ts')
  .mutant('an import keeps other writers waiting for its reader', RUNNING, 'few pile up')
  .change('if (piece === pieces) return;', 'await this.#note(tally); if (piece === pieces) return;')
  .mutant('an import keeps other writers waiting for its file', RUNNING, 'takes rows for a limited time')
  .change('if (piece === pieces) return;', '')
  .mutant('an import stores all rows that it has read at once', RUNNING, 'takes rows for a limited time')
  .change('if (performance.now() > end) return;', '')
  .in('src/stores/sqlite/bulk.ts')
  .mutant('an import counts rows that SQLite has not stored', IMPORT, 'trigger skips')
  .change('assertAllTaken(taken, rows.length);', '')
  .mutant('an import counts new rows that SQLite has not stored', IMPORT, 'trigger skips')
  .change('assertAllTaken(taken, stored.count);', '')
  .mutant('an import stores all new rows at once', BULK, 'as many rows at once')
  .change(' && performance.now() < end', '')
  .mutant('an import stores rows without a pause for other writers', BULK, 'as many rows at once')
  .change('await setTimeout(this.#times.bulkPause);', '')
  .mutant('an import stores books again that SQLite has', IMPORT, 'new rows are stored')
  .change('where books.id > ? and books.id <= ?`', 'where books.id > ? and books.id < ?`')
  .mutant('an import compares with the first books only', IMPORT, 'however many there are')
  .change('if (end === 0) break;', 'if (end === 0 || last > 0) break;')
  .in('src/stores/postgres/bulk.ts')
  .mutant('an import counts rows that PostgreSQL has not stored', IMPORT, 'trigger skips')
  .change('assertAllTaken(copy.rowCount, sent);', '')
  .mutant('an import counts new rows that PostgreSQL has not stored', IMPORT, 'trigger skips')
  .change('assertAllTaken(stored.books, sent);', '')
  .mutant('an import stores books again that PostgreSQL has', IMPORT, 'new rows are stored')
  .change('where books.id is null', 'where true')
  .mutant('an import follows synchronous_commit of the server', IMPORT, 'synchronous_commit')
  .change('import { DURABLY, STATEMENTS', "const DURABLY = 'true';\nimport { STATEMENTS")
  .mutant('a commit whose answer is lost is taken for a failed one', RUNNING, 'whose answer is lost')
  .change('throw (await this.#rollBack()) ? error :', 'throw (await this.#rollBack()) || true ? error :')
  .in('src/import/report.ts')
  .mutant('columns that may be the author are not named', IMPORT, 'names the other columns')
  .change('if (missing.length > 0 && unused', 'if (missing.length < 0 && unused')
  .in('src/files/rows.ts')
  .mutant('an author who is called NULL is lost on the way from store to store', READING, 'words for nothing')
  .change('!isExport && ', '')
  .in('src/files/years.ts')
  .mutant('a year beyond what JSON readers hold exactly is imported', READING, 'that are not certain')
  .change('Number.isSafeInteger(year)', 'Number.isInteger(year)')
  .mutant('a year of another calendar is stored as it stands', READING, 'that are not certain')
  .change('|| OTHER_CALENDAR', '|| Number(/\\d+/.exec(simple)?.[0])')
  .mutant('a year in digits of another calendar is stored as it stands', READING, 'that are not certain')
  .change('if (OTHER_DIGITS.test(trimmed) && (', 'if (trimmed === "" && (')
  .mutant('an evening is the midnight of another time zone', READING, 'that are certain')
  .change('return BEGINNING_OF_DAY.test(time) || isOdd', "return time >= '10:00' || isOdd")
  .in('src/files/columns.ts')
  .mutant('a film is imported as a book', READING, 'calls something else')
  .change('&& OTHER_THINGS.has(plain(kind))', '&& false')
  .mutant('a column is not found without the accents of its name', READING, 'names in other languages')
  .change("simple.normalize('NFD')", 'simple')
  .mutant('the title of a German table is the name of a person', READING, 'names in other languages')
  .change("'original_title',", "'original_title', 'name',")
  .mutant('the day when a book was read becomes its year', READING, 'another year of publication')
  .change('(isZotero ?', '(year !== undefined ?')
  .in('src/files/foreign.ts')
  .mutant('a table whose header looks like XML is refused', FOREIGN, 'header looks like another')
  .change('(?![,;\\t|])', '')
  .mutant('references in UTF-16 have no name', FOREIGN, 'called by its name')
  .change(".replaceAll('␀', '')", '')
  .in('src/files/reading.ts')
  .mutant('JSON that is named as text is read as a table', FORMATS, 'by its name and its beginning')
  .change(' && !/^\\s*(?:\\[\\s*)?\\{\\s*"/.test(input.text)', '')
  .mutant('the first piece of a file alone shows its format', FOREIGN, 'called by its name')
  .change('await input.peek(FOREIGN_BEGINNING)', 'await input.peek(1)')
  .in('src/files/decoding.ts')
  .mutant('a file is read in an encoding of which Node.js alters characters', FORMATS, 'refused as a whole')
  .change('if (!EXACT.test(this.encoding))', 'if (false)')
  .mutant('U+FFFD is damage beside damage', FORMATS, 'in a column that is not used')
  .change('replacement !== undefined && at', 'replacement === undefined && at')
  .in('src/files/text-input.ts')
  .mutant(
    'a file of UTF-8 with damaged bytes is taken for one of another encoding',
    FORMATS,
    'most of its letters',
  )
  .change('this.#letters >= this.#damaged', 'this.#damaged === 0')
  .mutant('one line of UTF-8 does not show that others are damaged', FORMATS, 'in a column that is not used')
  .change('OF_ONE * this.#telling >= this.#damaged', 'false')
  .mutant('GBK is read as damaged UTF-8', FORMATS, 'most of its letters')
  .change('this.#letters >= this.#damaged', 'this.#letters > 0')
  .mutant('a file is judged by its beginning', FORMATS, 'most of its letters')
  .change('return hasDamage && !isCertain && ', 'return hasDamage && isCertain && ')
  .in('src/files/reading.ts')
  .mutant('a damaged name of a column is not noticed', FORMATS, 'most of its letters')
  .change('if (FIELD_NAMES.some(isMissing)) assertNamesUtf8', 'if (false) assertNamesUtf8')
  .mutant('damaged rows that were rejected are imported', READING, 'for damaged bytes, and are rejected')
  .change('if (names.includes(REFUSED)) input.takeForRejects();', '')
  .in('src/files/json.ts')
  .mutant('values are lost if the first objects lack their keys', READING, 'first 1 MiB')
  .change('const BEGINNING = 1024 * 1024;', 'const BEGINNING = 64 * 1024;')
  .mutant('a record of something else is a book', FORMATS, 'no book')
  .change('if (!namesOf(columns).some(', 'if (!Object.keys(object).some(')
  .mutant('a date of Project Gutenberg becomes the year', READING, 'dates of CSL JSON')
  .change('isJsonObject(issued));', 'issued !== undefined);')
  .in('src/files/json-values.ts')
  .mutant('a translator becomes an author', FORMATS, 'authors of other programs')
  .change("author !== null && AUTHOR.test(author.creatorType ?? author.role ?? '')", 'author !== null')
  .mutant('the author of an introduction becomes an author', FORMATS, "LibraryThing's authors")
  .change('(?!hor of)', '')
  .mutant('a range of years becomes its first year', READING, 'dates of CSL JSON')
  .change('return years.size > 1 ?', 'return years.size < 0 ?')
  .in('src/files/writing.ts')
  .mutant('a title is a formula in Excel', FOR_EXCEL, 'a file for Excel')
  .change('!/^[\\s\\p{C}\\p{DI}=+\\-@#＝＋－＠﹢﹣﹦﹫−]/u.test(text) &&', 'true &&')
  .mutant('007 is a number in Excel', FOR_EXCEL, 'a file for Excel')
  .change('(words > 1 || !/\\p{N}/u.test(text))', 'words >= 0')
  .in('src/files/csv-header.ts')
  .mutant(
    'rows after a header are skipped with the blank lines before it',
    FORMATS,
    'another delimiter would',
  )
  .change('length: next - input.at - offset', 'length: next')
  .mutant('a title of a table is its header', FORMATS, 'a title alone, above the header')
  .change('first.isHeader ? row.hasMore', 'first.isHeader ? true')
  .in('src/files/csv.ts')
  .mutant(
    'a title that was protected from Excel is imported with its protection',
    FOR_EXCEL,
    'a file for Excel',
  )
  .change("!== '\\t' || !field.startsWith('=\"')", "!== ''")
  .mutant('a title that looks protected loses that on its way through CSV', FOR_EXCEL, 'a file for Excel')
  .change("this.#tokenizer.delimiter !== '\\t' || ", '')
  .mutant('a row of blanks is a book', FORMATS, 'every field is blank')
  .change('[^ \\t\\r\\n]', '.')
  .mutant('a damaged text is stored', FORMATS, 'in a column that is not used')
  .change('this.#input.holdsNul || this.#input.isDamaged', 'this.#input.holdsNul')
  .mutant('rows that a quote joins become one book', FORMATS, 'quotes that join rows')
  .change('if (this.#isOfRows) {', 'if (false) {')
  .mutant('a row that is cut off is a book', FORMATS, 'may be cut off')
  .change(' || end === this.#input.text.length', '')
  .mutant('a reason stands in the place of a field that its row lacks', READING, 'again and again')
  .change(' + delimiter.repeat(lacking)', '')
  .mutant('the reason of a row with fewer fields becomes its author', READING, 'again and again')
  .change(' || tokenizer.count < this.#own', '')
  .mutant('quotes that join two fields shift the others to the left', FORMATS, 'quotes that join fields')
  .change('if (this.#joinsFields) return false;', '')
  .in('src/files/csv-tokenizer.ts')
  .mutant('an author keeps his quotes after a blank', FORMATS, 'blanks before quotes')
  .change('if (text.charCodeAt(at) === BLANK &&', 'if (false &&')
  .mutant('quotes beside tabs join two fields', FORMATS, 'quotes that join fields, beside tabs')
  .change('(!isClosed || joinsFields)', '!isClosed')
  .mutant('one character after a closing quote is lost', FUZZ, 'delimited-text')
  .change(
    '? length : afterBlanks(text, end, delimiter);',
    '? length : afterBlanks(text, end + 1, delimiter);',
  )
  .mutant('a quote of a text swallows the following rows', FORMATS, 'begins with a quote and 16 MiB follow')
  .change('if (this.#isRow(text, start, field)) return start;', '')
  .in('src/files/json-splitter.ts')
  .mutant('anything may stand between two books of an array', FORMATS, 'text between two elements')
  .change("if (text[at] !== ',')", "if (text[at] === '}')")
  .in('src/files/correcting.ts')
  .mutant(
    'a corrected record may become two books, of which one is lost',
    READING,
    'are corrected as a whole',
  )
  .change(' && found.length === 1', '')
  .mutant('a correction takes away what follows in its record', READING, 'whatever else is in the record')
  .change('return before + quoted(value) + after;', 'return before + quoted(value);')
  .in('client/src/book-catalogue.ts')
  .mutant('the client sends a creation without a key', CLIENT, 'however many answers are lost')
  .change("const headers = { 'idempotency-key': idempotencyKey ?? randomKey() };", 'const headers = {};')
  .mutant('the client changes a book that is not the expected one', CLIENT, 'whichever field differs')
  .change('if (!isSame(stored, expected))', 'if (false)')
  .mutant('the client sends the tag of a book that its caller has changed', CLIENT, 'changes and removes it')
  .change('answered !== undefined && isSame(book, answered) ? tag', 'answered !== undefined ? tag')
  .mutant('the client does not send the tag of the expected book', CLIENT, 'removes meanwhile')
  .change("headers: { 'if-match': tag }", 'headers: {}')
  .mutant('the client takes its own change for that of another client', CLIENT, 'its own change after')
  .change('if (isAsWanted && answer.mayBeDone) return after;', '')
  .mutant(
    'the client takes a tag that a proxy has changed for a change',
    ANSWERS,
    'a tag that is refused although',
  )
  .change('if (current !== undefined && isSame(current, expected))', 'if (false)')
  .in('client/src/session.ts')
  .mutant('the client uses a token after it has expired', ANSWERS, 'however wrong the clock')
  .change('const USED_PART = 0.9;', 'const USED_PART = 1.6;')
  .in('client/src/book-list.ts')
  .mutant('the client takes a second array for a part of the list', LISTS, 'with a second array')
  .change('if (this.#head !== undefined) throw', 'if (this.#head === "") throw')
  .mutant('the timeout of a list runs while its caller is busy', LISTS, 'while its caller is busy')
  .change('deadline.stop();', '')
  .in('test/run.ts')
  .mutant('a run of tests passes though a file cannot be loaded', RUN, 'cannot be loaded')
  .change('return failed === 0 && passed > 0 && unfinished.length === 0;', 'return passed > 0;')
  .mutant('a run of tests passes without any test', RUN, 'when no test ran')
  .change('return failed === 0 && passed > 0 && unfinished.length === 0;', 'return failed === 0;').all;
