// Owns: what PostgreSQL keeps of imports. Each method runs within a transaction that its caller has started. On Citus, the coordinator
// keeps it. Twin of `sqlite/imports.ts`.

import {
  type ImportProgress,
  KEPT_IMPORTS,
  type KeptImport,
  type KeptImports,
} from '../../books/kept-imports.ts';
import type { Query } from './query.ts';
import { DURABLY } from './statements.ts';

export const CREATE_IMPORTS = `
  create table if not exists book_imports (
    number bigint primary key, fingerprint text not null, owner text not null, seen timestamptz not null default clock_timestamp(),
    state text not null default 'open', rows bigint not null default 0, books bigint not null default 0, report json, wanted json
  )`;

const NEW_NUMBER = `select nextval('book_log_number') as number`;

const SELECT = `
  select number, fingerprint, state, extract(epoch from clock_timestamp() - seen)::float8 * 1000 as idle, rows, books, report, wanted
  from book_imports`;
const UNFINISHED = "state in ('open', 'stopped')";
const INSERT = `insert into book_imports (number, fingerprint, owner) select $1, $2, $3 where ${DURABLY}`;
const FORGET = `
  delete from book_imports where number <= (select number from book_imports order by number desc limit 1 offset ${KEPT_IMPORTS})`;
const TAKE = `
  update book_imports set owner = $1, seen = clock_timestamp(), state = 'open' where number = $2 and ${DURABLY}`;
const KEEP = `
  update book_imports set seen = clock_timestamp(), state = case state when 'stored' then state else coalesce($1, state) end,
    rows = coalesce($2, rows), books = coalesce($3, books),
    report = case when state = 'stored' or (report is null and $5::text is null) then report else coalesce($4::json, report) end,
    fingerprint = coalesce($5, fingerprint)
  where number = $6 and owner = $7 and state <> 'undone' and ${DURABLY} returning number`;
const WANT = "update book_imports set wanted = $1 where number = $2 and state = 'checked'";
const TAKE_WANTED = `
  update book_imports set wanted = null, state = 'open' from (select wanted from book_imports where number = $1 for update) as before
  where number = $1 and owner = $2 and before.wanted is not null returning before.wanted`;
const CLOSE = `update book_imports set state = 'undone' where number = $1 or ($1::bigint is null and ${UNFINISHED}) returning number`;

export class PostgresImports implements KeptImports {
  readonly #query: Query;

  constructor(query: Query) {
    this.#query = query;
  }

  async find(number: number): Promise<KeptImport | undefined> {
    return (await this.#query<KeptImport>(`${SELECT} where number = $1`, [number]))[0];
  }

  async unfinished(fingerprint: string): Promise<KeptImport | undefined> {
    await this.#query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [fingerprint]); // equal requests wait for each other
    const newest = `${SELECT} where fingerprint = $1 and ${UNFINISHED} order by number desc limit 1`;
    return (await this.#query<KeptImport>(newest, [fingerprint]))[0];
  }

  async begin(fingerprint: string, owner: string): Promise<number> {
    const [{ number } = { number: 0 }] = await this.#query<{ number: number }>(NEW_NUMBER);
    await this.#query(INSERT, [number, fingerprint, owner]);
    await this.#query(FORGET);
    return number;
  }

  async take(number: number, owner: string): Promise<void> {
    await this.#query(TAKE, [owner, number]);
  }

  async keep(number: number, owner: string, progress: ImportProgress): Promise<boolean> {
    const { state = null, rows = null, books = null, fingerprint = null, report } = progress;
    const kept = report === undefined ? null : JSON.stringify(report);
    return (await this.#query(KEEP, [state, rows, books, kept, fingerprint, number, owner])).length === 1;
  }

  newest(most: number): Promise<readonly KeptImport[]> {
    return this.#query<KeptImport>(`${SELECT} order by number desc limit $1`, [most]);
  }

  async want(number: number, wanted: unknown): Promise<void> {
    await this.#query(WANT, [JSON.stringify(wanted), number]);
  }

  async takeWanted(number: number, owner: string): Promise<unknown> {
    const [found] = await this.#query<{ wanted: unknown }>(TAKE_WANTED, [number, owner]);
    return found?.wanted ?? null;
  }

  async forgetReports(): Promise<void> {
    await this.#query('update book_imports set report = null');
  }

  async close(number: number | undefined): Promise<boolean> {
    return (await this.#query(CLOSE, [number ?? null])).length > 0;
  }
}
