// Owns: mutants that only another order of events shows: the orders of test/orders notice them, or a history that is not
// linearizable.

import { Mutants } from './mutant.ts';

const ORDERS = 'test/orders/orders.test.ts';
const CONCURRENCY = 'test/contract/concurrency.test.ts';
const FOLLOWERS = 'followers of changes on PostgreSQL';
const LIST = 'test/contract/list.test.ts';

export const ORDERS_MUTANTS = new Mutants()
  .in('src/books/batches.ts')
  .mutant('half of a refused batch is sent after its deadline', ORDERS, 'calls in batches')
  .change('if (performance.now() >= deadline) return rejectAll(calls, this.#late);', '')
  .mutant('the answers of a batch go to other calls of it', ORDERS, 'calls in batches')
  .change('= answers[position] as', '= answers[answers.length - 1 - position] as')
  .mutant('a call that fails while others are answered ends the process', ORDERS, 'calls in batches')
  .change('late.push(answer.then(', 'late.push(nextTurn().then(() => answer).then(')
  .mutant('a batch has calls for two shards', ORDERS, 'calls in batches')
  .change('waiting.place === place', 'waiting.place.server === place.server')
  .mutant('a server that does not answer delays the books of others', ORDERS, 'calls in batches')
  .change('return this.#inFlight.get(server) ?? 0;', 'return 0 * server + this.inFlight;')
  .in('src/books/catalogue.ts')
  .mutant(
    'many searches may each be short for 0.1 s',
    'test/orders/overload.test.ts',
    'its share of half a second',
    'SQLite',
  )
  .change('times.shortSearches / search.waiting', 'Number.POSITIVE_INFINITY')
  .mutant('a short search waits for a long one', ORDERS, 'searches on PostgreSQL')
  .change(
    "return [typeof found === 'function'",
    "if (typeof found === 'function') await found().catch(() => {}); return [typeof found === 'function'",
  )
  .mutant('long searches are carried out at the same time', ORDERS, 'searches on PostgreSQL')
  .change('longSearch.call(found)', 'found()')
  .in('src/stores/postgres/changes.ts')
  .mutant(
    'of two changes of a book in one batch the first is lost',
    ORDERS,
    'changes on PostgreSQL',
    'SQLite',
  )
  .change('merged.set(id, { ...merged.get(id), ...changes })', 'merged.set(id, changes)')
  .mutant('both of two removals of a book in one batch get 200', ORDERS, 'changes on PostgreSQL', 'SQLite')
  .change('return states.delete(id);', 'return states.has(id);')
  .in('src/stores/postgres/finder.ts')
  .mutant('a search does not look for what is not indexed', ORDERS, 'searches on PostgreSQL', 'SQLite')
  .change('= await this.#catchUp(deadline);', '= { ...(await this.#state(deadline)), unindexed: 0 };')
  .mutant('a search is answered from an index that is made again', ORDERS, 'searches on PostgreSQL', 'SQLite')
  .change('if (again === madeAt) return', 'return')
  .mutant('a long search holds up short ones', ORDERS, 'searches on PostgreSQL', 'SQLite')
  .change('performance.now() + most + this.#times.notice', 'Number.POSITIVE_INFINITY')
  .mutant('a search that is not short fails', ORDERS, 'searches on PostgreSQL', 'SQLite')
  .change('if (isLate(error)) return () =>', 'if (isLate(search)) return () =>')
  .mutant('a count that is not short is left out', ORDERS, 'searches on PostgreSQL', 'SQLite')
  .change('if (isShort || !(error', 'if (!(error')
  .mutant('a search continues after its caller has given up', ORDERS, 'searches on PostgreSQL', 'SQLite')
  .change('return Math.min(deadline,', 'return Math.min(Number.POSITIVE_INFINITY,')
  .in('src/stores/postgres/book-index.ts')
  .mutant('two processes index at the same time', ORDERS, 'searches on PostgreSQL', 'SQLite')
  .change(' for update`;', '`;')
  .in('src/stores/postgres/history.ts')
  .mutant('a cursor has the newest row of the page before', ORDERS, FOLLOWERS, 'SQLite')
  .change('newest: now.newest', 'newest')
  .in('src/stores/postgres/log.ts')
  .mutant('a page midway through the log moves its end', ORDERS, FOLLOWERS, 'SQLite')
  .change("xid === '0' ? (reached?.now ?? target) : target", 'reached?.now ?? target')
  .in('src/stores/postgres/undo.ts')
  .mutant('an undo does not wait for a change in progress', ORDERS, 'undos on PostgreSQL', 'SQLite')
  .change(' order by id for update`', ' order by id`')
  .mutant('two undos bring the same book back', ORDERS, 'undos on PostgreSQL', 'SQLite')
  .change("'select from book_log_state for update'", "'select from book_log_state'")
  .in('src/stores/postgres/hosts.ts')
  .mutant('of two primaries the older one is used', ORDERS, 'the choice of a primary', 'SQLite')
  .change('one.timeline > other.timeline', 'one.timeline < other.timeline')
  .in('src/stores/postgres/standby.ts')
  .mutant(
    'a standby is read before it has replayed what the primary showed',
    ORDERS,
    'reads from a standby',
    'SQLite',
  )
  .change('if (state.hasReplayed) return client;', 'return client;')
  .mutant('all requests wait for a standby that is silent', ORDERS, 'reads from a standby', 'SQLite')
  .change('this.#restUntil = performance.now() + rest; // for all others', '')
  .in('src/stores/sqlite/durable-reads.ts')
  .mutant('a read on SQLite does not end its transaction', CONCURRENCY, 'came one by one')
  .change('if (this.db.isTransaction) this.#commit.run();', '')
  .in('src/stores/sqlite/store.ts')
  .mutant('the chunks of a list on SQLite are of different moments', LIST, 'a change of all books')
  .change("db.exec('begin'); // so that all chunks", '// so that all chunks').all;
