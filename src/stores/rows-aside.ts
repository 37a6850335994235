// Owns: the comparison of the rows that a load has put aside: which are new, how many, and some of each kind, by one SQL for both
// stores. Their tables are `aside`, with the rows in their order, and `known`, with those that are not new.

import { FIELD_NAMES } from '../books/book.ts';
import { COUNTS, FIELDS } from './columns.ts';
import type { Comparison, LoadRules, Sample, Samples, StoredBooks, TakenRow } from './load.ts';
import type { Query } from './query.ts';

/** Of `known` rows: what they are. */
export const HERE = 1;
export const REPEATED = 2;
const TAKEN = 3;

/** Characters of a title that a message shows, and one that tells that there are more. */
const SHOWN_TITLE = 81;

/** Rows with taken ids that are in memory together. */
const TAKEN_ROWS = 100;

const IS_NEW = 'not exists (select 1 from known where known.row = aside.row)';

/**
 * SQL for what a row is whose id another book or row has, and for the title of that one if they differ.
 * @param equal what it is if they do not.
 */
export function judgedBy(other: string, equal: number): string {
  const equals = FIELD_NAMES.map((name) => `aside.${name} = ${other}.${name}`).join(' and ');
  return `case when ${equals} then ${equal} else ${TAKEN} end,
    case when not (${equals}) then substr(${other}.title, 1, ${SHOWN_TITLE}) end`;
}

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

  protected async counts(): Promise<Comparison> {
    const [fresh] = await this.query(`select ${COUNTS} from aside where ${this.becomeBooks}`);
    const { books: count, ...lacking } = fresh as { books: number } & StoredBooks['lacking'];
    const doubtful = `select count(*) as doubtful from aside where ${IS_NEW} and doubt is not null`;
    const known = `
      select count(*) filter (where what = ${HERE}) as here, count(*) filter (where what = ${REPEATED}) as repeated,
        count(*) filter (where what = ${TAKEN}) as taken
      from (select min(what) as what from known group by row) as known`;
    const others = { ...(await this.query(doubtful))[0], ...(await this.query(known))[0] };
    return { fresh: { count, lacking }, ...(others as Omit<Comparison, 'fresh'>) };
  }

  async samples(most: number): Promise<Samples> {
    const rowsThat = (condition: string) =>
      this.query<Sample>(
        `select line, ${FIELDS}, doubt from aside where ${condition} order by row limit $1`,
        [most],
      );
    return {
      fresh: await rowsThat(`${IS_NEW} and doubt is null`),
      doubtful: await rowsThat(`${IS_NEW} and doubt is not null`),
      here: await rowsThat(`row in (select row from known where what <> ${TAKEN})`),
    };
  }

  async *taken(): AsyncGenerator<readonly TakenRow[], void, void> {
    const find = `
      select row, line, book as id, known.title, original from known join aside using (row)
      where row > $1 and what = ${TAKEN} order by row limit ${TAKEN_ROWS}`;
    for (let last = 0; ; ) {
      const rows = await this.query<TakenRow & { row: number }>(find, [last]);
      if (rows.length === 0) return;
      yield rows;
      last = Number(rows.at(-1)?.row);
    }
  }
}
