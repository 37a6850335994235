// Owns: taking changes back in a SQLite file, and which imports and undos there were (rule H5). Twin of `postgres/undo.ts`.

import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Book } from '../../books/book.ts';
import type { NotUndone, UndoRequest } from '../../books/store.ts';
import type { UndoneBooks } from '../bulk.ts';
import { FIELDS, ID_AND_FIELDS } from '../columns.ts';
import { changeOf, disjoint, type Fields, hasChange, type IdRange, isEventOf } from '../states.ts';
import { Skipped } from './faults.ts';
import { about } from './log.ts';
import { preparing } from './structure.ts';

/** Rows that are looked through for the first one since a time, at most, while requests wait. */
const MOST_ROWS = 100_000;

/** The changes that are taken back. */
interface Selection {
  /** A condition in SQL, with the number of the first one. */
  readonly condition: string;
  readonly from: number;
  /** If it is one change, its book. */
  readonly book?: number;
}

/** Of a book that is gone. */
const NONE = { title: null, author: null, year: null } as const;

type Row = Fields & { readonly isSelected: 0 | 1 };

/** Each method is called in a transaction. */
export class Undo {
  readonly #prepare;

  constructor(db: DatabaseSync) {
    this.#prepare = preparing(db);
  }

  /** @param most rows that are looked through. */
  select(request: UndoRequest, most = MOST_ROWS): Selection | NotUndone {
    if ('since' in request) return this.#since(request.since, most);
    const from = 'change' in request ? request.change : request.import;
    const find = this.#prepare(`
      select last - number + $from as book, event from book_log where ${hasChange('$from')} order by number limit 1`);
    const row = find.get({ from }) as { book: number; event: string | null } | undefined;
    if (row !== undefined && isEventOf(request, row)) return { condition: 'part_of = $from', from };
    if (!row?.book || !('change' in request)) return 'unknown';
    return { condition: `${changeOf('$id')} = $from`, from, book: row.book };
  }

  /** The rows after the last one that is older. */
  #since(at: number, most: number): Selection | NotUndone {
    const condition = "number >= $from and event is not 'undo'";
    const older = this.#prepare(`
      select number from (select number, at from book_log order by number desc limit ?) where at < ? limit 1`);
    const number = older.get(most, at)?.number;
    if (number !== undefined) return { condition, from: Number(number) + 1 };
    const rows = this.#prepare('select count(*) as count from (select 1 from book_log limit ?)').get(most);
    if (rows?.count === most) return 'many';
    const oldest = this.#prepare('select event, year from book_log order by number limit 1').get();
    return oldest?.event === 'beginning' && oldest.year === 0 ? { condition, from: 0 } : 'beyond';
  }

  /** The books of a selection, each in one range or several. */
  books({ condition, from, book }: Selection): IdRange[] {
    if (book !== undefined) return [{ book, last: book }];
    const books = this.#prepare(`
      select book, max(last) as last from book_log where book > 0 and ${condition} group by book order by book`);
    return disjoint(books.all({ from }) as unknown as IdRange[]);
  }

  /** Takes the changes of books back. @param isDryRun whether it only looks. */
  undo(ids: Iterable<number>, selection: Selection, isDryRun: boolean): UndoneBooks {
    const left: number[] = [];
    let undone = 0;
    for (const id of ids) {
      const outcome = this.#undo(id, selection, isDryRun);
      if (outcome === 'undone') undone += 1;
      else if (outcome === 'left') left.push(id);
    }
    return { undone, left };
  }

  /**
   * Makes a book what it was before the first of the selected rows, unless others have changed it since: what they did between two
   * of them, or after the last one, may only lead back to a state that it had before.
   * @returns `same` if it is as it was.
   */
  #undo(id: number, { condition, from }: Selection, isDryRun: boolean): 'undone' | 'left' | 'same' {
    const now = this.#prepare(`select ${ID_AND_FIELDS} from books where id = ?`).get(id) as Book | undefined;
    const rows = this.#prepare(`
      select number, ${FIELDS}, (${condition}) as isSelected from ${about('$id')} where number >= $from order by number`);
    const present: Fields = now ?? NONE;
    const had = new Set<string>();
    let wanted: Fields = present;
    let isBegun = false;
    let isByOthers = false;
    let isFree = true;
    for (const { fields, key, isSelected } of statesOf(rows.iterate({ id, from }), present)) {
      if (isSelected && !isBegun) wanted = fields;
      isBegun ||= isSelected;
      if (!isBegun) continue;
      if (isSelected && isByOthers) isFree &&= had.has(key);
      if (isSelected || !isByOthers) had.add(key);
      isByOthers = !isSelected;
    }
    if (keyOf(present) === keyOf(wanted)) return 'same';
    if (!isFree) return 'left';
    if (!isDryRun) this.#store(id, now !== undefined, wanted);
    return 'undone';
  }

  #store(id: number, isThere: boolean, { title, author, year }: Fields): void {
    const write = (sql: string, ...values: (string | number | null)[]) => this.#prepare(sql).run(...values);
    const { changes } =
      title === null
        ? write('delete from books where id = ?', id)
        : isThere
          ? write('update books set title = ?, author = ?, year = ? where id = ?', title, author, year, id)
          : write(`insert into books (${ID_AND_FIELDS}) values (?, ?, ?, ?)`, id, title, author, year);
    if (changes !== 1) throw new Skipped();
  }
}

/** A state of a book, and whether the change that ended it is selected. */
interface Passed {
  readonly fields: Fields;
  readonly key: string;
  readonly isSelected: boolean;
}

/** The states before those rows that altered something, and the present one. */
function* statesOf(rows: Iterable<unknown>, present: Fields): Generator<Passed, void, void> {
  let last: Passed | undefined;
  for (const { isSelected, ...fields } of rows as Iterable<Row>) {
    const next = { fields, key: keyOf(fields), isSelected: isSelected === 1 };
    if (last !== undefined && last.key !== next.key) yield last;
    last = next;
  }
  const key = keyOf(present);
  if (last !== undefined && last.key !== key) yield last;
  yield { fields: present, key, isSelected: true };
}

/** Equal for equal states. */
function keyOf({ title, author, year }: Fields): string {
  return hash('sha256', JSON.stringify([title, author, year]));
}
