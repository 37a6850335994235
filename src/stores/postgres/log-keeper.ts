// Owns: beginning the log of changes again, while the service runs, after another program has emptied it or taken a part of it away.
// Does not: look on Citus, where only a start looks.

import { StoreUnavailable } from '../../books/store.ts';
import { within } from '../../within.ts';
import { STATE } from './book-index.ts';
import type { Connections } from './connections.ts';
import { IS_SOUND } from './log-tables.ts';
import { codeOf } from './query.ts';

/** A table or a column is missing. */
const MISSING = new Set(['42P01', '42703']);

/** Whether there are as many books as the index has, with the same highest id; null while the index lacks rows of the log. */
const IS_WHOLE = `
  select case unindexed when 0 then
    (select count(*) from books) = (select count(*) from book_index)
      and (select max(id) from books) is not distinct from (select max(id) from book_index)
    end as "isWhole"
  from (${STATE}) as state`;

export class LogKeeper {
  readonly #connections: Connections;
  readonly #begin: () => Promise<unknown>;
  #beginning: Promise<unknown> | undefined;

  /** @param begin creates the missing parts of the structure, as a start does. */
  constructor(connections: Connections, begin: () => Promise<unknown>) {
    this.#connections = connections;
    this.#begin = begin;
  }

  /**
   * Begins the log again if it is not complete.
   * @throws StoreUnavailable
   */
  async keep(deadline: number): Promise<void> {
    if (await this.#isSound(deadline)) return;
    this.#beginning ??= this.#begin().finally(() => {
      this.#beginning = undefined;
    });
    const end = Math.max(0, deadline - performance.now());
    const begun = this.#beginning.then(
      () => true,
      (error: unknown) => {
        throw new StoreUnavailable(error);
      },
    );
    if (!(await within(end, begun))) throw new StoreUnavailable('the log of changes is made again', 'late');
  }

  /**
   * Begins the log again if the index has all rows of the log, but not all books: no trigger has noted some changes.
   * @returns whether the index had all rows, so that the books could be compared.
   */
  async compare(deadline: number): Promise<boolean> {
    const query = (text: string) =>
      this.#connections.query<{ isWhole: boolean | null }>('searches', text, [], deadline);
    const [found] = await query(IS_WHOLE);
    if (found?.isWhole === false) {
      await query('update book_index_state set version = 0');
      await this.#begin();
    }
    return typeof found?.isWhole === 'boolean';
  }

  async #isSound(deadline: number): Promise<boolean> {
    try {
      const query = this.#connections.query<{ isSound: boolean }>('searches', IS_SOUND, [], deadline);
      return (await query)[0]?.isSound ?? false;
    } catch (error) {
      if (MISSING.has(codeOf(error) ?? '')) return false;
      throw error;
    }
  }
}
