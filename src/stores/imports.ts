// Owns: what both stores keep of imports, by one SQL. Each method is called in a transaction. On Citus, the coordinator keeps it.

import type { ImportProgress, KeptImport, KeptImports } from '../books/kept-imports.ts';
import type { Query } from './query.ts';

/** How many imports are kept. */
const KEPT = 100;

/** What each store says in its own way. */
export interface ImportsDialect {
  /** Gives the next number of the log, as `number`. */
  readonly nextNumber: string;
  /** Milliseconds since 1970. */
  readonly now: string;
  /** A condition that is true, and makes the commit durable. */
  readonly durably: string;
  /** Others who look for an unfinished import wait until the transaction ends. */
  readonly beAlone: string;
}

/** @param integer the store's type for 64-bit integers. `report` and `wanted` are JSON. */
export const createImports = (integer: string) => `
  create table if not exists book_imports (
    number ${integer} primary key, fingerprint text not null, owner text not null, seen ${integer} not null, state text not null default 'open',
    rows ${integer} not null default 0, books ${integer} not null default 0, report text not null default 'null', wanted text not null default 'null'
  )`;

const UNFINISHED = "state in ('open', 'stopped')";

/** As SQL returns it: with JSON as text. */
type Row = Omit<KeptImport, 'report' | 'wanted'> & Readonly<Record<'report' | 'wanted', string>>;

export class StoredImports implements KeptImports {
  readonly #query: Query;
  readonly #dialect: ImportsDialect;

  constructor(query: Query, dialect: ImportsDialect) {
    this.#query = query;
    this.#dialect = dialect;
  }

  async find(number: number): Promise<KeptImport | undefined> {
    return (await this.#select('where number = $1', number))[0];
  }

  async unfinished(fingerprint: string): Promise<KeptImport | undefined> {
    await this.#query(this.#dialect.beAlone);
    const newest = `where fingerprint = $1 and ${UNFINISHED} order by number desc limit 1`;
    return (await this.#select(newest, fingerprint))[0];
  }

  newest(most: number): Promise<readonly KeptImport[]> {
    return this.#select('order by number desc limit $1', most);
  }

  async begin(fingerprint: string, owner: string): Promise<number> {
    const { nextNumber, now, durably } = this.#dialect;
    const [{ number } = { number: 0 }] = await this.#query<{ number: number }>(nextNumber);
    const insert = `insert into book_imports (number, fingerprint, owner, seen) select $1, $2, $3, ${now} where ${durably}`;
    await this.#query(insert, [number, fingerprint, owner]);
    await this.#query(`
      delete from book_imports where number <= (select number from book_imports order by number desc limit 1 offset ${KEPT})`);
    return number;
  }

  async take(number: number, owner: string): Promise<void> {
    const { now, durably } = this.#dialect;
    const take = `update book_imports set owner = $1, seen = ${now}, state = 'open' where number = $2 and ${durably}`;
    await this.#query(take, [owner, number]);
  }

  async keep(number: number, owner: string, progress: ImportProgress): Promise<boolean> {
    const { now, durably } = this.#dialect;
    const { state = null, rows = null, books = null, fingerprint = null, report } = progress;
    const kept = await this.#query(
      `update book_imports set seen = ${now}, state = case state when 'stored' then state else coalesce($1, state) end,
        rows = coalesce($2, rows), books = coalesce($3, books), fingerprint = coalesce($4, fingerprint),
        report = case when state = 'stored' or (report = 'null' and cast($4 as text) is null) then report else coalesce($5, report) end
      where number = $6 and owner = $7 and state <> 'undone' and ${durably} returning number`,
      [state, rows, books, fingerprint, report === undefined ? null : JSON.stringify(report), number, owner],
    );
    return kept.length === 1;
  }

  async want(number: number, wanted: unknown): Promise<void> {
    const want = "update book_imports set wanted = $1 where number = $2 and state = 'checked'";
    await this.#query(want, [JSON.stringify(wanted), number]);
  }

  async takeWanted(number: number, owner: string): Promise<unknown> {
    const wanted = (await this.find(number))?.wanted ?? null;
    const taken = await this.#query(
      `update book_imports set wanted = 'null', state = 'open'
      where number = $1 and owner = $2 and wanted = $3 and wanted <> 'null' returning number`,
      [number, owner, JSON.stringify(wanted)],
    );
    return taken.length === 1 ? wanted : null;
  }

  async forgetReports(): Promise<void> {
    await this.#query("update book_imports set report = 'null'");
  }

  async close(number: number | undefined): Promise<boolean> {
    const which = number === undefined ? UNFINISHED : 'number = $1';
    const close = `update book_imports set state = 'undone' where ${which} returning number`;
    return (await this.#query(close, number === undefined ? [] : [number])).length > 0;
  }

  async #select(which: string, value: string | number): Promise<KeptImport[]> {
    const rows = await this.#query<Row>(
      `select number, fingerprint, state, ${this.#dialect.now} - seen as idle, rows, books, report, wanted from book_imports ${which}`,
      [value],
    );
    return rows.map((row) => ({
      ...row,
      report: JSON.parse(row.report),
      wanted: JSON.parse(row.wanted),
    }));
  }
}
