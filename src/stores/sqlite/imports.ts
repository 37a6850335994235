// Owns: what a SQLite file keeps of imports. Each method is called in a transaction. Twin of `postgres/imports.ts`.

import type { StatementSync } from 'node:sqlite';
import {
  type ImportProgress,
  KEPT_IMPORTS,
  type KeptImport,
  type KeptImports,
} from '../../books/kept-imports.ts';
import { NOW } from './log-tables.ts';

/** `seen` is in milliseconds since 1970, `report` is JSON. */
export const CREATE_IMPORTS = `
  create table if not exists book_imports (
    number integer primary key, fingerprint text not null, owner text not null, seen integer not null, state text not null default 'open',
    rows integer not null default 0, books integer not null default 0, report text not null default 'null', wanted text not null default 'null'
  ) strict`;

export const NEW_NUMBER = `insert into book_log (at, book, last) values (${NOW}, 0, 0) returning number`;

const SELECT = `select number, fingerprint, state, ${NOW} - seen as idle, rows, books, report, wanted from book_imports`;
const UNFINISHED = "state in ('open', 'stopped')";
const INSERT = `insert into book_imports (number, fingerprint, owner, seen) values (?, ?, ?, ${NOW})`;
const FORGET = `
  delete from book_imports where number <= (select number from book_imports order by number desc limit 1 offset ${KEPT_IMPORTS})`;
const TAKE = `update book_imports set owner = ?, seen = ${NOW}, state = 'open' where number = ?`;
const KEEP = `
  update book_imports set seen = ${NOW}, state = case state when 'stored' then state else coalesce(?1, state) end,
    rows = coalesce(?2, rows), books = coalesce(?3, books), fingerprint = coalesce(?5, fingerprint),
    report = case when state = 'stored' or (report = 'null' and ?5 is null) then report else coalesce(?4, report) end
  where number = ?6 and owner = ?7 and state <> 'undone'`;
const WANT = "update book_imports set wanted = ? where number = ? and state = 'checked'";
const TAKE_WANTED =
  "update book_imports set wanted = 'null', state = 'open' where number = ? and owner = ? and wanted <> 'null'";
const CLOSE = `update book_imports set state = 'undone' where number = ? or (? is null and ${UNFINISHED})`;

export class SqliteImports implements KeptImports {
  readonly #prepare: (sql: string) => StatementSync;

  constructor(prepare: (sql: string) => StatementSync) {
    this.#prepare = prepare;
  }

  async find(number: number): Promise<KeptImport | undefined> {
    return importOf(this.#prepare(`${SELECT} where number = ?`).get(number));
  }

  async unfinished(fingerprint: string): Promise<KeptImport | undefined> {
    const newest = `${SELECT} where fingerprint = ? and ${UNFINISHED} order by number desc limit 1`;
    return importOf(this.#prepare(newest).get(fingerprint));
  }

  async begin(fingerprint: string, owner: string): Promise<number> {
    const number = Number(this.#prepare(NEW_NUMBER).get()?.number);
    this.#prepare(INSERT).run(number, fingerprint, owner);
    this.#prepare(FORGET).run();
    return number;
  }

  async take(number: number, owner: string): Promise<void> {
    this.#prepare(TAKE).run(owner, number);
  }

  async keep(number: number, owner: string, progress: ImportProgress): Promise<boolean> {
    const { state = null, rows = null, books = null, fingerprint = null, report } = progress;
    const kept = report === undefined ? null : JSON.stringify(report);
    return this.#prepare(KEEP).run(state, rows, books, kept, fingerprint, number, owner).changes === 1;
  }

  async newest(most: number): Promise<readonly KeptImport[]> {
    const rows = this.#prepare(`${SELECT} order by number desc limit ?`).all(most);
    return rows.map((row) => importOf(row) as KeptImport);
  }

  async want(number: number, wanted: unknown): Promise<void> {
    this.#prepare(WANT).run(JSON.stringify(wanted), number);
  }

  async takeWanted(number: number, owner: string): Promise<unknown> {
    const found = await this.find(number);
    return this.#prepare(TAKE_WANTED).run(number, owner).changes === 1 ? found?.wanted : null;
  }

  async forgetReports(): Promise<void> {
    this.#prepare("update book_imports set report = 'null'").run();
  }

  async close(number: number | undefined): Promise<boolean> {
    return this.#prepare(CLOSE).run(number ?? null, number ?? null).changes > 0;
  }
}

function importOf(row: unknown): KeptImport | undefined {
  if (row === undefined) return undefined;
  const found = row as KeptImport;
  return { ...found, report: JSON.parse(String(found.report)), wanted: JSON.parse(String(found.wanted)) };
}
