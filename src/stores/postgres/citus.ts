// Owns: how books are changed and listed in PostgreSQL with Citus, which distributes the table `books` by id.
// Citus refuses `for update` on several servers, and carries out the parts of a statement one after the other.
// Refuses: to let a locked book wait by itself: all changes of its batch wait for it. To list the books of one moment.
// docs/engines.md says what of this was tried.

import { once } from 'node:events';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { Book, BookChanges } from '../../books/book.ts';
import type { BookList, BookUpdate } from '../../books/store.ts';
import { ConditionalChanges, type StoreStates } from './books/conditional-changes.ts';
import { withoutLeadingComma } from './books/lists.ts';
import { FIND } from './books/statements.ts';
import { asJson } from './books/text.ts';
import { type Connections, QUERY_TIMEOUT } from './server/connections.ts';
import { NUMBERS } from './server/hosts.ts';
import type { TableOperations } from './store.ts';

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

export function operationsOfCitus(connections: Connections): TableOperations {
  const conditional = new ConditionalChanges(connections, FIND, storeStates);
  return {
    find: FIND,
    changes: {
      update: (updates, deadline) => update(connections, updates, deadline),
      remove: (ids, deadline) => remove(connections, ids, deadline),
      changeIf: (changes, deadline) => conditional.carryOut(changes, deadline),
    },
    list: (signal) => list(connections, signal),
  };
}

async function update(
  connections: Connections,
  updates: readonly BookUpdate[],
  deadline: number,
): Promise<readonly (Book | undefined)[]> {
  const states: (Book | undefined)[] = updates.map(() => undefined);
  for (let open = [...updates.keys()]; open.length > 0; ) {
    const { taken, left } = firstOfEachBook(open, updates);
    const merged = [...taken].map(([id, positions]) => {
      return {
        id,
        ...Object.assign({}, ...positions.map((position) => updates[position]?.changes)),
      } as BookChanges & { readonly id: number };
    });
    const columns = [
      merged.map(({ id }) => id),
      merged.map(({ title }) => title),
      merged.map(({ author }) => author),
      merged.map(({ year }) => year),
    ];
    const { rows } = await connections.query<Book>('batches', UPDATE, columns, deadline);
    for (const book of rows) {
      let state = book;
      for (const position of taken.get(book.id) ?? []) {
        state = { ...state, ...updates[position]?.changes };
        states[position] = state;
      }
    }
    open = left;
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

async function list(connections: Connections, signal: AbortSignal): Promise<BookList> {
  const client = await connections.takeForList();
  const onClientError = () => {}; // the statement in progress reports it
  client.on('error', onClientError);
  let open = true;
  let isWhole = false;
  const close = () => {
    if (!open) return;
    open = false;
    client.off('error', onClientError);
    client.release(!isWhole); // a piece may still be arriving: only ending the connection stops it
  };
  const chunks = pieces(client, signal, () => {
    isWhole = true;
  });
  try {
    const first = await chunks.next();
    return { chunks: startingWith(first, chunks), close };
  } catch (error) {
    close();
    throw connections.unavailable(error);
  }
}

/**
 * The first changes of each book, as far as one statement can carry them out: only the state after it comes back, and the
 * states between them follow from it if none of them changes a field that the first one does not.
 * @returns their positions by book, and the positions that are left, both in their order.
 */
function firstOfEachBook(positions: readonly number[], updates: readonly BookUpdate[]) {
  const taken = new Map<number, number[]>();
  const waiting = new Set<number>();
  const left: number[] = [];
  for (const position of positions) {
    const { id, changes } = updates[position] as BookUpdate;
    const before = taken.get(id);
    const first = before && updates[before[0] as number]?.changes;
    if (waiting.has(id) || (first && Object.keys(changes).some((field) => !(field in first)))) {
      waiting.add(id);
      left.push(position);
    } else if (before === undefined) taken.set(id, [position]);
    else before.push(position);
  }
  return { taken, left };
}

/**
 * The text of all books, piece by piece.
 * @param signal ends the wait for the first chunk.
 * @param onEnd called after the last one.
 */
async function* pieces(
  client: pg.PoolClient,
  signal: AbortSignal,
  onEnd: () => void,
): AsyncGenerator<string | Uint8Array, void, void> {
  let after: number | undefined = 0;
  for (let isFirst = true; after !== undefined; isFirst = false) {
    const question = { text: LAST_OF_PIECE, values: [after], types: NUMBERS, query_timeout: QUERY_TIMEOUT };
    const [last] = (await client.query<{ id: number }>(question)).rows as { id: number }[];
    const range = `where id > ${after}${last === undefined ? '' : ` and id <= ${last.id}`}`;
    const rows = client.query(copyTo(asJson(',', range)));
    rows.on('error', () => {}); // the reader gets it; it may also occur when there is no reader any more
    await once(rows, 'readable', isFirst ? { signal } : {});
    let isBeginning = true;
    for await (const chunk of withoutLeadingComma(rows)) {
      if (isBeginning && !isFirst) yield ',';
      isBeginning = false;
      yield chunk;
    }
    after = last?.id;
  }
  onEnd();
}

/** A generator, with the step that was taken from it. */
async function* startingWith<Item>(
  first: IteratorResult<Item, void>,
  rest: AsyncGenerator<Item, void, void>,
): AsyncGenerator<Item, void, void> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}
