// Owns: mutants of what programs and people do with the log of changes: following it, histories, and undo.

import { Mutants } from './mutant.ts';

const CHANGES = 'test/stores/changes.test.ts';
const LOG = 'test/stores/log.test.ts';
const UNDO = 'test/stores/undo.test.ts';
const TOUCHED = 'test/stores/touched-log.test.ts';
const CLOCKS = 'test/stores/clocks.test.ts';
const WRONG_CLOCK = 'a clock that is wrong';
const STEPS = 'test/stores/sqlite-steps.test.ts';
const FOLLOWERS = 'test/api/followers.test.ts';
const RIGHTS = 'test/stores/rights.test.ts';

const FOLLOWED = 'a follower gets all books';
const GONE = 'a cursor is no longer valid in another store';
const WAITS = 'a request waits for a change';
const LATER = 'nothing that was changed later';

export const LOG_MUTANTS = new Mutants()
  .in('src/stores/sqlite/history.ts')
  .mutant('a cursor of a restored file is valid', CHANGES, 'that was restored')
  .change('number = $newest and at = $at and', 'number = $newest and')
  .mutant('a cursor before a beginning is valid', CHANGES, GONE)
  .change("book = 0 and event = 'beginning'", 'false')
  .mutant('changes that are no longer kept are skipped', CHANGES, GONE)
  .change('and $number >=', 'and $number >= 0 *')
  .mutant('a page of changes has no end in time', CHANGES, 'ends when it is late')
  .change('() => performance.now() >= end', '() => false')
  .in('src/stores/sqlite/log.ts')
  .mutant('a page of changes reads the past of its books', STEPS, 'a page of changes')
  .change(' order by number desc limit 1)`;', ')`;')
  .mutant('a page reads a book once for each of its changes', STEPS, 'a page of changes')
  .change('next === last && !books.has(next)', 'next === last')
  .in('src/stores/sqlite/store.ts')
  .mutant('changes of other processes do not end a wait', CHANGES, WAITS)
  .change('if (version !== before) onChange();', '')
  .in('src/stores/sqlite/log.ts')
  .mutant('a clock that is ahead for a while removes rows', CLOCKS, WRONG_CLOCK)
  .change('coalesce(looked, $now) - $kept', '$now - $kept')
  .mutant('one row of an early clock takes younger ones with it', CLOCKS, WRONG_CLOCK)
  .change(
    'found.findIndex(({ isOld }) => isOld === 0)',
    'found.findLastIndex(({ isOld }) => isOld === 1) + 1',
  )
  .mutant('one row of a clock that was ahead keeps the log', CLOCKS, WRONG_CLOCK)
  .change('at < end or at > $now', 'at < end')
  .mutant(
    'a log without rows is taken for a whole one',
    TOUCHED,
    'after delete from book_log_state',
    'SQLite',
  )
  .change('return isFilled !== 1 || version', 'return version')
  .mutant('triggers that are gone are not missed', TOUCHED, 'after drop trigger', 'SQLite')
  .change(' || version !== this.#version', '')
  .in('src/stores/sqlite/book-index.ts')
  .mutant('an index that is ahead of the log is kept', TOUCHED, 'where number > 1')
  .change(' and (select max(number) from book_log)`;', ' and 1e15`;')
  .mutant('an index with other books than there are is kept', TOUCHED, 'books were removed', 'SQLite')
  .change('(select count(*) from books) = (select count(*) from book_index)', 'true')
  .mutant('a step of the index has many long books', STEPS, 'few books are indexed')
  .change('const STEP_WEIGHT = INDEXED_UNITS;', 'const STEP_WEIGHT = 1024 * 1024;')
  .in('src/stores/sqlite/undo.ts')
  .mutant('an undo since a time stops at an earlier one', CLOCKS, 'the changes since a time')
  .change(
    '"at >= $value and event',
    '"number > (select max(number) from book_log where at < $value) and event',
  )
  .mutant('an undo overwrites later changes', UNDO, LATER)
  .change("this.#isFree ? fields : 'left'", 'fields')
  .mutant('an undo looks through a past without an end', STEPS, 'an undo lets reads pass')
  .change(' || this.#weight > this.#most.weight', '')
  .mutant('an undo looks through a past in one turn', STEPS, 'an undo lets reads pass')
  .change('return this.#turn.isOver;', 'return false;')
  .mutant('an undo since a time takes undos back', UNDO, 'since a time')
  .change(" and event is not 'undo'", '')
  .in('src/stores/states.ts')
  .mutant('books that were stored together have one number', UNDO, 'a request with a key', 'PostgreSQL')
  .change('`number - last + ', '`number + 0 * ')
  .mutant('a change that altered nothing is a state', LOG, 'another program replaces')
  .change('=== this.#book?.[name])) return false;', '=== this.#book?.[name])) {}')
  .mutant('heavy states fill a page without an end', CHANGES, 'heavy states')
  .change(' || this.#weight >= HEAVY', '')
  .in('src/books/followers.ts')
  .mutant('a thousand followers are answered in one turn', FOLLOWERS, 'a thousand that wake')
  .change('await nextTurn(); //', '//')
  .mutant('the end of one wait ends the watch of all', FOLLOWERS, 'the store is watched until')
  .change('if (this.#waiting.size === 0) this.#endWatch();', 'this.#endWatch();')
  .mutant('what followers read has no room', FOLLOWERS, 'different pages')
  .change('await this.#room();', '')
  .mutant('followers wait for room without an end', FOLLOWERS, 'has the page of before')
  .change(
    'await within(Math.max(0, end - performance.now()), reading.started.promise)',
    'await reading.started.promise',
  )
  .mutant('each follower waits for a store that is away', FOLLOWERS, 'a read that fails')
  .change('of [reading, ...this.#readings.values()]', 'of [reading]')
  .mutant('the end of a service waits for followers', CHANGES, WAITS)
  .change('this.#isClosed = true;\n    this.#wakeAll();', '')
  .in('src/http/connection.ts')
  .mutant(
    'a body that several answers share takes room for each',
    'test/api/connection.test.ts',
    'several answers share',
  )
  .change('body instanceof Uint8Array ? shared.get(body) : undefined;', 'undefined;')
  .in('src/api/history.ts')
  .mutant('each follower has a text of its page', FOLLOWERS, 'share its bytes')
  .change('shared.get(page) ??', '')
  .in('src/stores/postgres/history.ts')
  .mutant('a cursor of a restored database is valid', CHANGES, 'whose dump was restored')
  .change('now?.server !== server || ', '')
  .mutant('what an open transaction wrote is skipped once it is no longer kept', CHANGES, 'leaves open')
  .change('pruned < pg_snapshot_xmin($2::pg_snapshot)', 'pg_visible_in_snapshot(pruned, $2::pg_snapshot)')
  .mutant('all books are read after the first page only', CHANGES, FOLLOWED)
  .change('last: Number.MAX_SAFE_INTEGER', 'last: 1')
  .in('src/stores/postgres/log-keeper.ts')
  .mutant(
    'a log on PostgreSQL that is gone is not missed',
    TOUCHED,
    'after drop table book_log',
    'PostgreSQL',
  )
  .change('if (await this.#isSound(deadline)) return;', 'return;')
  .mutant(
    'an index on PostgreSQL with other books than there are is kept',
    TOUCHED,
    'was replaced',
    'PostgreSQL',
  )
  .change('is not distinct from (select max(id) from book_index)', 'is not null')
  .in('src/stores/postgres/log.ts')
  .mutant('numbers of the log begin again below the old ones', TOUCHED, 'after a replication')
  .change('if (places?.isOwn && numbers?.isBehind) return [CATCH_UP];', '')
  .mutant('the documented repair leaves the log as it is', TOUCHED, 'the documented repair')
  .change('!index?.lacksChanges', 'true')
  .mutant('every role may execute what runs as the owner', RIGHTS, 'nobody but the owner')
  .change('    closeIn(schema), //', '    //')
  .mutant('a start does not look who may execute what runs as the owner', RIGHTS, 'nobody but the owner')
  .change('return isOpen ? [closeIn(schema)] :', 'return')
  .mutant('triggers on tables of others write as the owner', RIGHTS, 'on its own tables')
  .change('if tg_table_schema <> current_schema() then', 'if false then')
  .mutant('a session says what its writes are a part of', RIGHTS, 'a part of')
  .change(
    'as first where book = 0`',
    `as first where book = 0 union all
      select 'undo', number from (select nullif(split_part(current_setting('book_catalogue.part_of', true), ' ', 2), '')::bigint as number) as sent
      where number > 0\``,
  )
  .mutant('only the beginning of a range of books is read', CHANGES, FOLLOWED, 'PostgreSQL')
  .change('ids.length < most ? NO_RANGE', 'true ? NO_RANGE')
  .in('src/stores/postgres/log.ts')
  .mutant('a clock that is ahead for a while removes rows of PostgreSQL', CLOCKS, WRONG_CLOCK)
  .change('else looked - $2', 'else now() - $2')
  .mutant('one row of an early clock takes younger ones with it on PostgreSQL', CLOCKS, WRONG_CLOCK)
  .change(
    'where young.xid is null or (oldest.xid, oldest.number) < (young.xid, young.number)',
    'where "isOld"',
  )
  .in('src/stores/postgres/undo.ts')
  .mutant('an undo on PostgreSQL overwrites later changes', UNDO, LATER)
  .change('bool_and(coalesce(is_free, true))', 'bool_and(true)')
  .mutant('an undo on PostgreSQL since a time takes undos back', UNDO, 'since a time')
  .change("and event is distinct from 'undo'", '').all;
