// Owns: the comparison of the rows that a load has put aside: which are new, which change a book, how many, and some of each kind, by
// one SQL for both stores. Their tables are `aside`, with the rows in their order, and `known`, with those that are not new.

import { type BookFields, FIELD_NAMES } from '../books/book.ts';
import { COLUMNS, COUNTS, FIELDS } from './columns.ts';
import type {
  ChangedSample,
  Comparison,
  Differing,
  LeftRow,
  LoadRules,
  Sample,
  Samples,
  StoredBooks,
  WhyLeft,
} from './load.ts';
import type { Query } from './query.ts';

/** Of `known` rows: what they are. */
export const HERE = 1;
export const REPEATED = 2;
export const CHANGED = 3;
const LEFT: Readonly<Record<WhyLeft, number>> = {
  ...{ changedSince: 4, conflict: 5, lacking: 6, twice: 7, changedMeanwhile: 8 },
};

/** Characters of a text that a message shows, and one that tells that there are more. */
const SHOWN_TEXT = 81;

/** Rows that are left and in memory together. */
const LEFT_ROWS = 100;

/** Books that rows change: a row without an id that equals one of them will not equal it any more. */
export const CHANGING = `select other.book as id from aside as other join known on known.row = other.row where what = ${CHANGED}`;

/** Conditions of `aside` rows: they are not known; or they may be from before a change of their books. */
export const IS_NEW = 'not exists (select 1 from known where known.row = aside.row)';
export const MAY_BE_SINCE = `tag <> '' and not exists (select 1 from known where known.row = aside.row and what <> ${LEFT.conflict})`;

/** The columns of `known` other than the row: the book's present tag and, where they differ, the beginnings of its values. */
export const KNOWN = `what, tag, ${FIELDS}`;

/** SQL for the beginnings of the values of a row. */
const beginnings = (row: string) =>
  COLUMNS.map(({ name, isText }) => (isText ? `substr(${row}.${name}, 1, ${SHOWN_TEXT})` : `${row}.${name}`));

export class RowsAside {
  protected readonly query: Query;
  protected readonly rules: LoadRules;
  /** A condition of the rows that become books. */
  protected readonly becomeBooks: string;

  protected constructor(query: Query, rules: LoadRules) {
    this.query = query;
    this.rules = rules;
    this.becomeBooks = rules.skipsDoubtful ? `${IS_NEW} and doubt is null` : IS_NEW;
  }

  /** SQL for the rows whose ids earlier rows have. */
  protected get findTwice(): string {
    return `
      insert into known (row, ${KNOWN})
      select aside.row, case when ${this.equals('first')} then ${REPEATED} else ${LEFT.twice} end, null, ${this.#differing('first')}
      from (select min(row) as row, book from aside where book is not null group by book having count(*) > 1) as several
      join aside as first on first.row = several.row join aside on aside.book = several.book
      where aside.row > several.row`;
  }

  /**
   * SQL for the rows with the ids of books.
   * @param tag SQL for the present tag of a book.
   * @param from joins rows that are new with the books.
   */
  protected findWithIds(tag: string, from: string): string {
    return `
      insert into known (row, ${KNOWN})
      select row, case when present is null then ${HERE} when own is null then ${LEFT.lacking} when own = present then ${CHANGED}
          else ${LEFT.conflict} end, present, ${FIELDS}
      from (
        select aside.row, aside.tag as own, case when not (${this.equals('books')}) then ${tag} end as present,
          ${this.#differing('books').map((value, at) => `${value} as ${FIELD_NAMES[at]}`)}
        from ${from}
      ) as judged order by row`; // so that it reads all of `known` before it writes there
  }

  /**
   * SQL for the rows whose books had their tags before.
   * @param tag SQL for the tag of a book in a row of the log.
   * @param from joins rows with those of the log.
   */
  protected static findSince(tag: string, from: string): string {
    return `
      select distinct aside.row from ${from}
      where log.last = log.book and log.title is not null and ${tag} = aside.tag`;
  }

  /** SQL for what becomes of rows in conflict, after those of `findSince` were put into the table `since`. */
  protected get settle(): readonly string[] {
    const conflicts = `what = ${LEFT.conflict}`;
    const since = 'row in (select row from since)';
    const inConflict = {
      refuse: [],
      change: [`update known set what = ${CHANGED} where ${conflicts}`],
      add: [
        `update aside set book = null where row in (select row from known where what in (${LEFT.conflict}, ${LEFT.twice}))`,
        `delete from known where what in (${LEFT.conflict}, ${LEFT.twice}) or (what = ${LEFT.changedSince} and tag is null)`,
      ],
    };
    return [
      `update known set what = ${LEFT.changedSince} where ${conflicts} and ${since}`,
      `insert into known (row, what) select row, ${LEFT.changedSince} from since
       where not exists (select 1 from known where known.row = since.row) order by row`,
      ...inConflict[this.rules.onConflict],
    ];
  }

  /** SQL for the condition that a row changes nothing of another one. */
  protected equals(other: string): string {
    return this.rules.fields.map((name) => `aside.${name} = ${other}.${name}`).join(' and ');
  }

  /** Of changes that are no longer possible, since other programs have changed or removed the books. */
  protected forgetChanges(condition: string): string {
    return `update known set what = ${LEFT.changedMeanwhile} where what = ${CHANGED} and ${condition}`;
  }

  #differing(other: string): string[] {
    const values = beginnings(other);
    return FIELD_NAMES.map((name, at) => {
      const differs = this.rules.fields.includes(name) ? `aside.${name} <> ${other}.${name}` : 'false';
      return `case when ${differs} then ${values[at]} end`;
    });
  }

  /** @param hasHistory whether the log was asked. */
  protected async counts(hasHistory: boolean): Promise<Comparison> {
    const [fresh] = await this.query(`select ${COUNTS} from aside where ${this.becomeBooks}`);
    const { books: count, ...lacking } = fresh as { books: number } & StoredBooks['lacking'];
    const [doubtful] = await this.query<{ doubtful: number }>(
      `select count(*) as doubtful from aside where ${IS_NEW} and doubt is not null`,
    );
    const known = await this.query<{ what: number; rows: number }>(
      'select what, count(*) as rows from known group by what',
    );
    const rows = new Map(known.map((one) => [one.what, one.rows]));
    const rowsOf = (what: number) => rows.get(what) ?? 0;
    const [ids] = await this.query<{ rows: number; books: number }>(`
      select count(*) as rows, count(*) filter (where what = ${HERE} or known.tag is not null) as books
      from aside left join known using (row) where book is not null`);
    const [all] = ids?.rows ? await this.query<{ books: number }>('select count(*) as books from books') : [];
    return {
      fresh: { count, lacking },
      doubtful: doubtful?.doubtful ?? 0,
      here: rowsOf(HERE),
      repeated: rowsOf(REPEATED),
      changed: rowsOf(CHANGED),
      changedSince: hasHistory ? rowsOf(LEFT.changedSince) : undefined,
      conflicts: rowsOf(LEFT.conflict),
      absent: all && all.books - (ids?.books ?? 0),
    };
  }

  async samples(most: number): Promise<Samples> {
    const rowsThat = (condition: string) =>
      this.query<Sample>(
        `select line, ${FIELDS}, doubt from aside where ${condition} order by row limit $1`,
        [most],
      );
    const changed = await this.query<Sample & Pick<ChangedSample, 'id'> & Before>(
      `select line, book as id, ${FIELD_NAMES.map((name) => `aside.${name}`)}, doubt, ${BEFORE}
       from aside join known using (row) where what = ${CHANGED} order by doubt is null, known.row limit $1`,
      [most],
    );
    return {
      fresh: await rowsThat(`${IS_NEW} and doubt is null`),
      doubtful: await rowsThat(`${IS_NEW} and doubt is not null`),
      here: await rowsThat(`row in (select row from known where what in (${HERE}, ${REPEATED}))`),
      changed: changed.map(({ line, id, title, author, year, doubt, ...row }) => {
        return { line, id, title, author, year, doubt, before: differing(row) };
      }),
    };
  }

  async *left(why: readonly WhyLeft[]): AsyncGenerator<readonly LeftRow[], void, void> {
    const reasons = new Map(why.map((one) => [LEFT[one], one]));
    const find = `
      select known.row as row, line, book as id, what, original, aside.tag as "rowTag", known.tag as tag, ${BEFORE},
        ${beginnings('aside').map((value, at) => `${value} as ${FIELD_NAMES[at]}`)}
      from known join aside using (row) where known.row > $1 and aside.row > $1 and what in (${[...reasons.keys()]}) order by known.row limit ${LEFT_ROWS}`;
    type Row = Omit<LeftRow, 'why' | 'here' | 'own'> & BookFields & Before & { row: number; what: number };
    for (let last = 0; ; ) {
      const rows = await this.query<Row>(find, [last]);
      if (rows.length === 0) return;
      yield rows.map(({ line, id, original, rowTag, tag, what, ...row }) => {
        const here = differing(row);
        const own = Object.fromEntries(
          FIELD_NAMES.flatMap((name) => (name in here ? [[name, row[name]]] : [])),
        );
        return { line, id, original, rowTag, tag, why: reasons.get(what) as WhyLeft, here, own };
      });
      last = Number(rows.at(-1)?.row);
    }
  }
}

/** The columns of `known` with the values of a book, where they differ. */
type Before = { readonly [Name in keyof BookFields as `before_${Name}`]: BookFields[Name] | null };
const BEFORE = FIELD_NAMES.map((name) => `known.${name} as before_${name}`).join(', ');

function differing(row: Before): Differing {
  const values = FIELD_NAMES.map((name) => [name, row[`before_${name}`]] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== null));
}
