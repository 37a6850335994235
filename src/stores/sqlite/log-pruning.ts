// Owns: removing old rows from the log of changes in a SQLite file (rule H6).

import type { DatabaseSync } from 'node:sqlite';
import { FIELD_NAMES } from '../../books/book.ts';

/** The most rows that are looked at together. */
const PRUNED = 500;

/** Which rows of the log are removed. */
export interface Pruning {
  /** Milliseconds for which rows are kept. */
  readonly kept: number;
  /** Milliseconds for which a row has to be found old, so that a clock that is wrong for less time removes nothing. */
  readonly confirmed: number;
  /** SQL for the number of the last row that may be removed. */
  readonly readTo: string;
}

/** Whether old rows are to be looked for. */
export function mustPrune(db: DatabaseSync, pruning: Pruning): boolean {
  if (pruning.kept === 0) return oldRows(db, pruning).some(({ book }, position) => position > 0 || book > 0);
  const { looked } = db.prepare('select looked from book_log_state').get() as { looked: number | null };
  const now = Date.now();
  return looked === null || looked > now || looked <= now - pruning.confirmed;
}

/**
 * Removes some of the oldest rows, within a transaction, until it is late. The newest old row stays, without its content, because
 * cursors point to it.
 * @returns whether there may be more to remove.
 */
export function prune(db: DatabaseSync, pruning: Pruning, isLate: () => boolean): boolean {
  const rows = oldRows(db, pruning);
  const stays = rows.pop();
  const remove = db.prepare('delete from book_log where number = ?');
  for (const { number } of rows) {
    remove.run(number);
    if (isLate()) return true;
  }
  const empty = ['book = 0, last = 0, part_of = null', ...FIELD_NAMES.map((name) => `${name} = null`)];
  if (stays !== undefined && stays.book > 0)
    db.prepare(`update book_log set ${empty} where number = ?`).run(stays.number);
  if (rows.length === PRUNED) return true;
  db.exec(`
    delete from book_events where number < (select min(number) from book_log)
      and not exists (select 1 from book_log where part_of = book_events.number)`);
  db.prepare('update book_log_state set looked = ? where ?').run(Date.now(), pruning.kept > 0 ? 1 : 0);
  return false;
}

/** The oldest rows, up to the first young one. A row with a time to come counts as old, since a clock was wrong. */
function oldRows(db: DatabaseSync, { kept, confirmed, readTo }: Pruning): { number: number; book: number }[] {
  const now = Date.now();
  const rows = db.prepare(`
    select number, book, at < end or at > $now as isOld from (
      select coalesce(looked, $now) - $kept as end from book_log_state
      where $kept = 0 or looked between 0 and $now - $confirmed
    ) cross join (select number, book, at from book_log where number <= ${readTo} order by number limit ${PRUNED + 1})
    order by number`);
  const found = rows.all({ now, kept, confirmed }) as { number: number; book: number; isOld: 0 | 1 }[];
  const young = found.findIndex(({ isOld }) => isOld === 0);
  return young === -1 ? found : found.slice(0, young);
}
