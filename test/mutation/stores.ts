// Owns: mutants of the stores: what they do to their file or server, and what they do if that fails.

import { Mutants } from './mutant.ts';

const SQLITE = 'test/stores/sqlite.test.ts';
const VERSIONS = 'test/stores/versions.test.ts';
const CONCURRENCY = 'test/contract/concurrency.test.ts';
const POSTGRES = 'test/stores/postgres.test.ts';
const RIGHTS = 'test/stores/rights.test.ts';
const FAILOVER = 'test/nightly/failover.test.ts';
const STANDBY = 'test/nightly/standby.test.ts';
const SHARDS = 'test/stores/shards.test.ts';
const ORDERS = 'test/orders/orders.test.ts';
const ANSWERS = 'test/release/answers.test.ts';
const IMPORT = 'test/transfer/import.test.ts';
const FAR_IDS = 'that has the highest possible id';
const DURABILITY = 'test/stores/durability.test.ts';
const BEFORE_DURABLE = 'nothing shows a write before it is durable';
const SYNC = 'test/release/sync.test.ts';
const POWER = 'test/release/power.test.ts';
const LOCKED_BOOKS = 'test/nightly/locked-books.test.ts';

export const STORES_MUTANTS = new Mutants()
  .in('src/stores/sqlite/bulk.ts')
  .mutant('an import or a copy into a SQLite file that is gone succeeds', SQLITE, 'imported or copied')
  .change('this.#store?.assertInPlace();', '')
  .in('src/stores/sqlite/group-commit.ts')
  .mutant('a write to a SQLite file that is gone is acknowledged', SQLITE, 'no write is acknowledged until')
  .change('this.#store.assertInPlace();', '')
  .mutant('a write is answered before its sync has ended', DURABILITY, BEFORE_DURABLE)
  .change('await this.#sync();', 'void this.#sync();')
  .mutant('a single read shows a write before it is durable', DURABILITY, BEFORE_DURABLE)
  .change('this.#reads.hold();', '')
  .mutant('a single read misses a write that has been answered', DURABILITY, BEFORE_DURABLE)
  .change('this.#reads.release();\n    for', 'for')
  .mutant('a failed sync is taken for a successful one', DURABILITY, 'a failed sync ends the process')
  .change('error === null ? resolve()', 'true ? resolve()')
  .mutant('the process continues after a failed sync', SYNC, 'no sync succeeds')
  .change('this.#onSyncFailed(error.message)));', 'undefined));')
  .mutant('a list waits for as long as a sync hangs', SYNC, 'while a disk does not answer, single books')
  .change(
    "if (performance.now() >= deadline) throw new StoreUnavailable('a sync takes too long', 'late');",
    '',
  )
  .mutant(
    'a write that has waited for too long for another process is carried out',
    SQLITE,
    'none is carried out later',
  )
  .change('performance.now() < deadline);', 'true);')
  .mutant(
    'what an operator refuses fails the other writes of its transaction',
    SQLITE,
    'fails no write of another kind',
  )
  .change('if (isRefused && group.length > 1) {', 'if (false) {')
  .in('src/stores/sqlite/checkpoints.ts')
  .mutant('the log of a SQLite file is never moved into it', DURABILITY, 'the log of writes starts over')
  .change("if (this.#checkpoint('noop').log < LONG_ENOUGH) return;", 'return;')
  .mutant(
    'a log starts over only with the next write',
    'test/nightly/list.test.ts',
    'GET /books waits for those that keep a long log',
  )
  .change('if (log - checkpointed <= FEW || log > TOO_LONG) this.#restart();', '')
  .mutant('a failed sync of the file is ignored', SYNC, 'cannot be synced while it serves')
  .change('if (isFailedSync(error)) throw error;\n      this.#pause', 'this.#pause')
  .mutant('a failed sync of the file is ignored at a stop', SYNC, 'cannot be synced when it stops')
  .change('if (isFailedSync(error)) throw error;\n      // otherwise', '// otherwise')
  .mutant('a log starts over before the file has been synced', POWER, 'logs that start over')
  .change('pragma synchronous = normal;', 'pragma synchronous = off;')
  .in('src/stores/sqlite/writes.ts')
  .mutant('a SQLite file gives ids that another process has given', IMPORT, FAR_IDS)
  .change(
    'const last = this.#last;\n    const ids = books',
    'const last = books.length;\n    const ids = books',
  )
  .in('src/stores/sqlite/file.ts')
  .mutant('a write to a SQLite file that has been moved is acknowledged', SQLITE, ' moved: no write')
  .change('this.#files.map(', 'this.#files.slice(1).map(')
  .mutant('a write without a write-ahead log is acknowledged', SQLITE, 'without its write-ahead log')
  .change("['', '-wal', '-shm'].map", "[''].map")
  .in('src/stores/sqlite/store.ts')
  .mutant('a single read needs its SQLite file in place', SQLITE, ' deleted: .*single reads succeed')
  .change(
    'return this.#read(() => untilHeavy',
    'this.#file.assertInPlace(); return this.#read(() => untilHeavy',
  )
  .mutant(
    'a list comes from another SQLite file',
    SQLITE,
    ' replaced by a copy of itself: .* no list comes from another file',
  )
  .change('this.#file.assertInPlace(); // else', '// else')
  .mutant('a list shows a write before it is durable', DURABILITY, BEFORE_DURABLE)
  .change('await this.#commits.durable(deadline); // until', '// until')
  .mutant('a search shows a write before it is durable', DURABILITY, BEFORE_DURABLE)
  .change('await this.#commits.durable(request.deadline - performance.timeOrigin);', '')
  .mutant('a write that was answered with 503 is carried out later', SQLITE, 'none is carried out later')
  .change('Math.min(performance.now() + this.#times.sqlite.write, deadline)', 'performance.now() + 30_000')
  .mutant(
    'a batch that was sent late is carried out after its calls got 503',
    SQLITE,
    'none is carried out later',
  )
  .change(
    'Math.min(performance.now() + this.#times.sqlite.write, deadline)',
    'performance.now() + this.#times.sqlite.write',
  )
  .in('src/stores/sqlite/durable-reads.ts')
  .mutant(
    'reads wait for their own sync while another process has answered',
    DURABILITY,
    'rule 28: a process whose',
  )
  .change('if (this.#isHeld && this.version !== this.#version) this.release();', '')
  .in('src/stores/sqlite/book-index.ts')
  .mutant('indexing during a sync shows a write before it is durable', DURABILITY, BEFORE_DURABLE)
  .change('if (this.#mustWait())', 'if (false)')
  .in('src/stores/sqlite/structure.ts')
  .mutant('a start continues a log that is not on disk', POWER, 'beside a reader')
  .change('await pipeline(', 'if (false) await pipeline(')
  .mutant('a start blocks its process while it waits', VERSIONS, 'does not block its own process')
  .change('      await pause(busyPause);\n', '      Atomics.wait(PAUSE, 0, 0, busyPause);\n')
  .mutant('the names of a new file and its log may be lost', SQLITE, 'syncs the log, then its name')
  .change('await sync(dirname(path));', '')
  .mutant('what a dead process has not synced may be read and lost', SQLITE, 'syncs the log, then its name')
  .change('-wal`); // else', '`); // else')
  .mutant('a file of a newer version is written', VERSIONS, 'is of a newer version')
  .change('    assertKnown(db);\n    const mode', '    const mode')
  .mutant('a file of a newer version is read', VERSIONS, 'reads or changes a file of a newer version')
  .change('  assertKnown(db);\n  if (hasBooks', '  if (hasBooks')
  .mutant('a table that gives ids again is used', VERSIONS, 'ids can be given again')
  .change('if (!isOurs || !/', 'if (!isOurs && !/')
  .mutant('a table whose years are texts is used', VERSIONS, 'years are texts')
  .change('return String(type).toLowerCase() === column.type;', 'return true;')
  .mutant('an older table with a row that is no book is used', VERSIONS, 'is not UTF-8')
  .change('for (const _ of chunksOf(', 'for (const _ of [] ?? chunksOf(')
  .mutant('an older table accepts rows that are no books', VERSIONS, 'version 1.0 opens .* only books')
  .change('alter table books add check (', 'select 1 from books where (')
  .mutant('an index is opened in a file that is made for it', SQLITE, 'is not made again')
  .change('?mode=rw`', '?mode=rwc`')
  .in('src/stores/postgres/connections.ts')
  .mutant(
    'a transaction that the server aborts is sent six times',
    POSTGRES,
    'every time, with a serialization failure',
  )
  .change('const MAX_ATTEMPTS = 5;', 'const MAX_ATTEMPTS = 6;')
  .mutant(
    'a transaction that the server aborts is sent four times',
    POSTGRES,
    'every time, with a serialization failure',
  )
  .change('const MAX_ATTEMPTS = 5;', 'const MAX_ATTEMPTS = 4;')
  .mutant('a deadlock is not retried', POSTGRES, 'with 40P01, is retried')
  .change("new Set(['40001', '40P01'])", "new Set(['40001'])")
  .mutant('a write whose answer is lost is retried', POSTGRES, 'whose answer is lost')
  .change(
    "const isTakenBack = SERIALIZATION_FAILURES.has(code ?? '');",
    'const isTakenBack = code === undefined || SERIALIZATION_FAILURES.has(code);',
  )
  .mutant('a write whose answer is lost may arrive later', POSTGRES, 'whose answer is lost')
  .change('this.#socket.resetAndDestroy()', 'this.#socket.destroy()')
  .mutant(
    'a statement continues after its callers have been answered with 503',
    ORDERS,
    'the choice of a primary',
    'SQLite',
  )
  .change('Math.min(statement[kind], deadline - notice - performance.now())', 'statement[kind]')
  .mutant(
    'a process for which nothing fails stays with the old one of two primaries',
    ORDERS,
    'the choice of a primary',
    'SQLite',
  )
  .change('performance.now() - asked < watchPause', 'true')
  .mutant('a process goes back to the old one of two primaries', FAILOVER, 'with two primaries')
  .change('!isNewer(used, found)', 'true')
  .mutant('every statement that fails ends its connection', POSTGRES, 'costs no connection')
  .change("client.release(isLost || HOST_FAILURE.test(code ?? ''));", 'client.release(true);')
  .in('src/stores/postgres/limits.ts')
  .mutant('a limit of time of a database ends a list', POSTGRES, 'settings of a database')
  .change("set_config('statement_timeout', '0'", "set_config('lock_timeout', '0'")
  .mutant('a text of a book is NULL where a database says so', POSTGRES, 'settings of a database')
  .change("set_config('array_nulls', 'on', $", "set_config('array_nulls', 'off', $")
  .mutant('a process that is frozen holds the lock of a book for ever', LOCKED_BOOKS, 'is frozen')
  .change('idle_in_transaction_session_timeout = ', 'idle_session_timeout = ')
  .mutant('an export has only the books that policies show', RIGHTS, 'refuse a table')
  .change('if (hidden !== undefined)', 'if (hidden === null)')
  .mutant('books that policies hide while the service runs are not found', RIGHTS, 'while it runs')
  .change("then 'on' else 'off' end`;", "then 'on' else 'on' end`;")
  .in('src/stores/postgres/changes.ts')
  .mutant(
    'changes of locked books use the connections of all other books',
    LOCKED_BOOKS,
    'of a hundred such books',
  )
  .change("this.#carryOut('held', changes", "this.#carryOut('batches', changes")
  .mutant(
    'a trigger skips a change on a condition, which is acknowledged',
    CONCURRENCY,
    'trigger of an operator skips',
  )
  .change('columns])).length !== all)', 'columns])).length < 0)')
  .in('src/stores/postgres/statements.ts')
  .mutant('a write follows synchronous_commit of the server', POSTGRES, 'synchronous_commit')
  .change("when 'off' then 'on'", "when 'off' then 'off'")
  .mutant('a locked book delays the changes of its neighbours', LOCKED_BOOKS, 'delays only its own changes')
  .change('skip locked\n  )`', '\n  )`')
  .in('src/stores/postgres/structure.ts')
  .mutant('only its owner can advance a sequence that is behind', POSTGRES, 'a role that may use the table')
  .change('lock table books in share row exclusive mode;', 'alter sequence books_id_seq no cycle;')
  .mutant(
    'a start that must change the table does not wait for those who read it',
    POSTGRES,
    'waits for those who read it',
  )
  .change('new Set([LOCKED, ', 'new Set([')
  .mutant('a start waits for ever for those who read the table', POSTGRES, 'waits for those who read it')
  .change('if (performance.now() > end) throw', 'if (end < 0) throw')
  .mutant(
    'after the highest possible id in PostgreSQL, a sequence that is behind gives none',
    IMPORT,
    FAR_IDS,
    'PostgreSQL',
  )
  .change('from books where id <=', 'from books where true or id <=')
  .in('src/stores/postgres/bulk.ts')
  .mutant('beside a very high id, imported ids in PostgreSQL are given again', IMPORT, FAR_IDS, 'PostgreSQL')
  .change('(select max(id) from books where id <=', '(select max(id) from books where true or id <=')
  .in('src/stores/sqlite/text.ts')
  .mutant('a text that is not UTF-8 is exported as another one', VERSIONS, 'named by export', 'SQLite')
  .change("text.includes('\\ufffd')", 'text === undefined')
  .mutant('a year that no other program can read is exported', VERSIONS, 'named by export', 'SQLite')
  .change('wrong ?? rows', 'rows')
  .mutant('other programs may write NUL into a SQLite file', VERSIONS, 'is refused to other programs')
  .change(', char(0)) = 0', ', char(0)) >= 0')
  .in('src/stores/sqlite/log.ts')
  .mutant('SQLite gives the ids after the highest possible one', IMPORT, FAR_IDS)
  .change(
    'select coalesce(max(id), 0) from books where id <=',
    'select coalesce(max(id), 0) from books where true or id <=',
  )
  .mutant('beside a very high id, SQLite gives the id of a removed book again', IMPORT, FAR_IDS, 'SQLite')
  .change('lastIdWith(NOTED_TO)', "lastIdWith('0')")
  .in('src/times.ts')
  .mutant('a start that waits for a lock holds up all reads', ANSWERS, 'no read waits', 'PostgreSQL')
  .change('structureLock: 100', 'structureLock: 3000')
  .mutant(
    'a list is not answered within 5 s while its server is silent',
    ANSWERS,
    'while the network is cut',
    'PostgreSQL',
  )
  .change('firstChunk: ANSWER', 'firstChunk: 7000')
  .in('src/commands/copy.ts')
  .mutant('a copy into the old one of two primaries succeeds', FAILOVER, 'two primaries: copy', 'PostgreSQL')
  .change('await target.assertNewest();', '')
  .in('src/import/importing.ts')
  .mutant(
    'an import into the old one of two primaries succeeds',
    FAILOVER,
    'two primaries: import',
    'PostgreSQL',
  )
  .change('await this.#parts.assertNewest();', '')
  .in('src/stores/postgres/hosts.ts')
  .mutant('a host that has become a standby is read from', FAILOVER, 'nothing stale is read')
  .change("all.length > 1 : wanted !== 'any'", 'all.length > 1 : false')
  .mutant('of two primaries the first in the list is used', ORDERS, 'the choice of a primary', 'SQLite')
  .change('isNewer(other, one) ? other : one', 'one')
  .in('src/books/batches.ts')
  .mutant('a locked book has its own deadline', ANSWERS, 'its book is locked', 'PostgreSQL')
  .change('void Promise.all(late).then(', 'void Promise.all([]).then(')
  .in('src/stores/open-lists.ts')
  .mutant('stalled readers block the lists of all others', ORDERS, 'open lists')
  .change('if (performance.now() - since >= this.#times.stall) close();', '')
  .mutant('lists break off before one is open for long', ORDERS, 'open lists')
  .change('if (oldest <= performance.now() - this.#times.long) for', 'for')
  .mutant('of overlapping lists, only the first breaks off', ORDERS, 'open lists')
  .change('for (const close of this.#handed.keys()) close();', '[...this.#handed.keys()][0]?.();')
  .mutant('a list that broke off keeps others from breaking off', ORDERS, 'open lists')
  .change('      this.#handed.delete(close);\n      list', '      list')
  .mutant('a list breaks off although its reader has not stalled', ORDERS, 'open lists')
  .change('if (performance.now() - since >= this.#times.stall) close', 'close')
  .mutant('a list continues whose snapshot was given up', ORDERS, 'open lists')
  .change('if (!this.#open.has(close)) throw', 'if (false) throw')
  .mutant('a reader stalls while the store is at work', ORDERS, 'open lists')
  .change('        this.#handed.delete(close);', '')
  .mutant('a list takes the place for which another one has waited longer', ORDERS, 'open lists')
  .change('const [first] = this.#waiting;', 'const first = [...this.#waiting].pop();')
  .in('src/stores/postgres/standby.ts')
  .mutant('a standby is read without asynchronous commits', STANDBY, 'committed asynchronously')
  .change(
    "then pg_logical_emit_message(true, 'book-catalogue', '') else written end",
    'then flushed else written end',
  )
  .mutant('a standby is read that has gone over to another timeline', STANDBY, 'another primary from now on')
  .change("received_tli = $1 and status = 'streaming'", "$1 > 0 and status = 'streaming'")
  .mutant('a standby of another server or database is read', STANDBY, 'refused in one sentence')
  .change("system_identifier || ' ' || current_database() = $3", "$3 <> ''")
  .mutant('a failure of a standby is an error', STANDBY, 'cancels or breaks off')
  .change("return this.#count('primary');\n    }\n  }", 'throw LATE;\n    }\n  }')
  .in('src/stores/postgres/finder.ts')
  .mutant('a search waits for a silent standby', STANDBY, 'to the standby falls silent')
  .change('queryOn(client, limit + notice)', 'queryOn(client)')
  .in('src/stores/postgres/lists.ts')
  .mutant('a list waits for a silent standby', ANSWERS, 'standby falls silent')
  .change('AbortSignal.any([signal, AbortSignal.timeout(firstChunk)])', 'AbortSignal.any([signal])')
  .in('src/stores/postgres/snapshot.ts')
  .mutant('a list that waits for a silent server holds up writers', SHARDS, 'holds up no writer')
  .change(".finally(() => queryOn(locker, query)('rollback'))", '').all;
