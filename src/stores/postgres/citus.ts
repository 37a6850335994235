// Owns: how books are changed and listed in PostgreSQL with Citus, which distributes the table `books` by id.
// Citus refuses `for update` on several servers, and carries out the parts of a statement one after the other.
// Does not: let a locked book wait by itself: all changes of its batch wait for it. Does not list a consistent snapshot.
// docs/engines.md says what of this was tried.

import { once } from 'node:events';
import { to as copyTo } from 'pg-copy-streams';
import type { Book } from '../../books/book.ts';
import type { BookList, BookUpdate } from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { ConditionalChanges, type StoreStates } from './conditional-changes.ts';
import type { Connections } from './connections.ts';
import { NUMBERS } from './hosts.ts';
import { withTimeout } from './limits.ts';
import { arriving } from './lists.ts';
import { FINDS } from './statements.ts';
import type { TableOperations } from './store.ts';
import { asJson } from './text.ts';

// Functions that a statement calls must not be volatile here: the servers' own `synchronous_commit` decides about durability.
const UPDATE = `
  update books set
    title = coalesce(change.title, books.title),
    author = coalesce(change.author, books.author),
    year = coalesce(change.year, books.year)
  from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) as change (id, title, author, year)
  where books.id = change.id and books.id = any($1::bigint[])
  returning books.id, books.title, books.author, books.year`;

const REMOVE = 'delete from books where id = any($1::bigint[]) returning id';

// Compare and set, as on a single server.
const SAME = `
  unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::boolean[])
    as change (id, old_title, old_author, old_year, title, author, year, is_removal)
  where books.id = change.id and books.id = any($1::bigint[])
    and books.title = old_title and books.author = old_author and books.year = old_year`;
const UPDATE_IF = `
  update books set title = change.title, author = change.author, year = change.year
  from ${SAME} and not is_removal returning books.id`;
const REMOVE_IF = `delete from books using ${SAME} and is_removal returning books.id`;

/** Books of a list that are read together: all of them reach the coordinator before the first one leaves it. */
const PIECE = 10_000;

const LAST_OF_PIECE = `select id from books where id > $1 order by id offset ${PIECE - 1} limit 1`;

const storeStates: StoreStates = async (connections, pool, columns, deadline) => {
  const stored: number[] = [];
  for (const [statement, removes] of [
    [UPDATE_IF, false],
    [REMOVE_IF, true],
  ] as const) {
    if (!columns.at(-1)?.includes(removes)) continue;
    const { rows } = await connections.query<{ id: number }>(pool, statement, columns, deadline);
    stored.push(...rows.map(({ id }) => id));
  }
  return stored;
};

export function operationsOfCitus(connections: Connections, { query }: Times['postgres']): TableOperations {
  const conditional = new ConditionalChanges(connections, FINDS, storeStates);
  return {
    find: FINDS,
    changes: {
      update: (updates, deadline) => update(connections, updates, deadline),
      remove: (ids, deadline) => remove(connections, ids, deadline),
      changeIf: (changes, deadline) => conditional.carryOut(changes, deadline),
    },
    list: (signal) => list(connections, query, signal),
  };
}

async function update(
  connections: Connections,
  updates: readonly BookUpdate[],
  deadline: number,
): Promise<readonly (Book | undefined)[]> {
  const states: (Book | undefined)[] = updates.map(() => undefined);
  for (let open = [...updates.entries()]; open.length > 0; ) {
    // One change of each book at a time: only its state after a statement comes back.
    const taken = new Map(open.toReversed().map(([position, { id }]) => [id, position]));
    const changes = [...taken.values()].map((position) => updates[position]?.changes);
    const columns = [
      [...taken.keys()],
      changes.map((change) => change?.title),
      changes.map((change) => change?.author),
      changes.map((change) => change?.year),
    ];
    const { rows } = await connections.query<Book>('batches', UPDATE, columns, deadline);
    for (const book of rows) states[taken.get(book.id) as number] = book;
    open = open.filter(([position, { id }]) => taken.get(id) !== position);
  }
  return states;
}

async function remove(
  connections: Connections,
  ids: readonly number[],
  deadline: number,
): Promise<readonly boolean[]> {
  const { rows } = await connections.query<Book>('batches', REMOVE, [[...new Set(ids)]], deadline);
  const removed = new Set(rows.map(({ id }) => id));
  return ids.map((id) => removed.delete(id)); // true for the first call of each book only
}

/** @param silence milliseconds after which a server that does not answer is given up. */
async function list(connections: Connections, silence: number, signal: AbortSignal): Promise<BookList> {
  const client = await connections.takeForList();
  const onClientError = () => {}; // the statement in progress reports it
  client.on('error', onClientError);
  let state: 'arriving' | 'whole' | 'closed' = 'arriving';
  const close = () => {
    if (state === 'closed') return;
    client.off('error', onClientError);
    client.release(state === 'arriving'); // only ending the connection stops a piece that is arriving
    state = 'closed';
  };
  async function* pieces(): AsyncGenerator<Buffer, void, void> {
    for (let after = 0; ; ) {
      const question = { ...withTimeout(LAST_OF_PIECE, [after], silence), types: NUMBERS };
      const [last] = (await client.query<{ id: number }>(question)).rows;
      const range = `where id > ${after}${last === undefined ? '' : ` and id <= ${last.id}`}`;
      const rows = client.query(copyTo(asJson(',', range)));
      rows.on('error', () => {}); // the reader gets it; it may also occur when there is no reader any more
      await once(rows, 'readable', after === 0 ? { signal } : {});
      yield* arriving(rows, silence, after === 0);
      if (last === undefined) break;
      after = last.id;
    }
    if (state === 'arriving') state = 'whole';
  }
  const chunks = pieces();
  try {
    const first = await chunks.next();
    const all = async function* () {
      if (!first.done) yield first.value;
      yield* chunks;
    };
    return { chunks: all(), close };
  } catch (error) {
    close();
    throw connections.unavailable(error);
  }
}
