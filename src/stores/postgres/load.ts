// Owns: the rows of a file in a PostgreSQL catalogue: they are copied into temporary tables, compared with its books, and stored, all
// in one transaction. Twin of `sqlite/load.ts`.

import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { FIELD_NAMES } from '../../books/book.ts';
import { NoLongerOpen } from '../../books/kept-imports.ts';
import { asCsvFields, quoted } from '../../books/line.ts';
import { assertAllTaken, UnknownOutcome } from '../bulk.ts';
import { FIELDS, ID_AND_FIELDS, withTypes } from '../columns.ts';
import type { Comparison, ImportWork, Load, LoadRow, LoadRules, Made } from '../load.ts';
import type { Query } from '../query.ts';
import { CHANGED, CHANGING, HERE, IS_NEW, MAY_BE_SINCE, REPEATED, RowsAside } from '../rows-aside.ts';
import { tagIn } from './text.ts';
import type { PostgresLogWriter } from './undo.ts';

// Dropped with their transaction: a pooler may give each transaction another connection. Without the keys, a statement that adds rows
// to `known` would look through all of them for each one.
const TABLES = `
  create temporary table aside on commit drop as
    select null::bigint as line, null::bigint as book, null::text as tag, ${FIELDS}, null::text as original, null::text as doubt
    from books with no data;
  alter table aside add row bigint generated always as identity primary key;
  create temporary table known (
    row bigint primary key, what integer not null, tag text, ${withTypes('bigint').map(({ name, type }) => `${name} ${type}`)}
  ) on commit drop`;
const COPY = `copy aside (line, book, tag, ${FIELDS}, original, doubt) from stdin with (format csv, encoding 'UTF8')`;

/** Rows without an id that equal an earlier one: their texts are compared only if their hashes are equal. */
const hash = (row: string) => `hash_record_extended(row(${FIELD_NAMES.map((name) => `${row}${name}`)}), 0)`;
const FIND_REPEATED = `
  insert into known (row, what) select row, ${REPEATED} from (
    select aside.row, aside.book, row_number() over (partition by ${FIELD_NAMES.map((name) => `aside.${name}`)} order by aside.row) as place
    from (select ${hash('')} as hash from aside group by 1 having count(*) > 1) as several
    join aside on ${hash('aside.')} = several.hash
  ) as places where place > 1 and book is null on conflict (row) do nothing`;
const FIND_HERE = `
  with changing as materialized (${CHANGING})
  insert into known (row, what) select aside.row, ${HERE} from aside join books using (${FIELDS}) left join changing on changing.id = books.id
  where aside.book is null and changing.id is null
  on conflict (row) do nothing`;

// Citus joins a query of temporary tables with tables that are on other servers, but not each of them.
const WITH_BOOKS = `(select * from aside where ${IS_NEW} offset 0) as aside join books on books.id = aside.book`;
const WITH_LOG = `(select * from aside where ${MAY_BE_SINCE} offset 0) as aside join book_log as log on log.book = aside.book`;
const CHANGES = `(
    select book, ${FIELD_NAMES.map((name) => `aside.${name}`)}, known.tag as present
    from aside join known using (row) where what = ${CHANGED} offset 0
  ) as aside`;
const PRESENT_TAG = tagIn('books.id', 'books');
const HAS_LOG = `
  select to_regclass('book_log') is not null and has_table_privilege(to_regclass('book_log'), 'select') as "hasLog"`;

const STORE = `insert into books (${FIELDS}) select ${FIELDS} from aside where book is null and`;
const STORE_WITH_IDS = `insert into books (${ID_AND_FIELDS}) select book, ${FIELDS} from aside where book is not null and`;

/** The catalogue that a load stores into. */
export interface LoadTarget {
  readonly client: pg.Client;
  readonly query: Query;
  /** Begins the transaction; commits it; or ends it without effect, which it does also after an end. */
  begin(): Promise<unknown>;
  commit(): Promise<void>;
  rollBack(): Promise<unknown>;
  logWriter(): Promise<PostgresLogWriter>;
  /** Reserves ids in a separate transaction, so that nobody waits for the end of this one. */
  reserveIdsThrough(lastId: number): Promise<void>;
}

export class PostgresLoad extends RowsAside implements Load {
  readonly #target: LoadTarget;
  readonly #isDryRun: boolean;
  /** They are copied. */
  readonly #lines = new PassThrough();
  readonly #copying: Promise<void>;
  /** How many of the rows are new, and how many change a book. */
  #fresh = 0;
  #changed = 0;

  private constructor(target: LoadTarget, rules: LoadRules, isDryRun: boolean) {
    super(target.query, rules);
    this.#target = target;
    this.#isDryRun = isDryRun;
    const copy = target.client.query(copyFrom(COPY));
    copy.on('error', () => {}); // there may be more than one
    this.#copying = pipeline(this.#lines, copy);
    this.#copying.catch(() => {}); // `add` and `compare` get it
  }

  /** @param isDryRun whether it only compares. */
  static async begin(target: LoadTarget, rules: LoadRules, isDryRun: boolean): Promise<PostgresLoad> {
    await target.begin();
    await target.query(TABLES);
    return new PostgresLoad(target, rules, isDryRun);
  }

  async add(rows: readonly LoadRow[]): Promise<void> {
    const lines = rows.map((row) => {
      const kept = row.original === undefined ? '' : quoted(row.original);
      const tag = row.tag === undefined ? '' : quoted(row.tag);
      return `${row.line},${row.id ?? ''},${tag},${asCsvFields(row)},${kept},${row.doubt ?? ''}\n`;
    });
    if (!this.#lines.write(lines.join(''))) await Promise.race([once(this.#lines, 'drain'), this.#copying]);
  }

  async compare(signal: AbortSignal): Promise<Comparison> {
    this.#lines.end();
    await this.#copying;
    await this.query('analyze aside');
    const [found] = await this.query<{ hasLog: boolean }>(HAS_LOG);
    const hasHistory = this.rules.hasHistory && found?.hasLog === true;
    for (const step of [...(await this.#stepsOfIds(hasHistory)), ...this.#stepsOfFields]) {
      signal.throwIfAborted();
      await this.query(step);
    }
    await this.query('analyze known');
    const comparison = await this.counts(hasHistory);
    [this.#fresh, this.#changed] = [comparison.fresh.count, comparison.changed];
    return comparison;
  }

  async store(
    work: ImportWork,
    signal: AbortSignal,
    onStored: (number: number, books: number) => void,
  ): Promise<Made> {
    const { name, fingerprint, owner, number: begun } = work;
    const due = this.#fresh + this.#changed;
    const none = { added: 0, changed: 0 };
    if (due === 0 && begun === undefined) return none;
    const { client } = this.#target;
    // The server finishes its statement, finds the connection closed, and rolls back.
    const leave = () => client.end();
    signal.throwIfAborted();
    signal.addEventListener('abort', leave);
    try {
      const log = await this.#target.logWriter();
      const number = begun ?? (await log.imports.begin(fingerprint, owner));
      const made = due > 0 ? await this.#storeAs(number, name, log) : none;
      const books = made.added + made.changed;
      const done = { state: 'stored', books, report: await work.report(true) } as const;
      // A report of a service stays forgotten; that of an import that begins here is new.
      const isOwn = await log.imports.keep(number, owner, begun ? done : { ...done, fingerprint });
      if (!isOwn) throw new NoLongerOpen();
      signal.removeEventListener('abort', leave);
      signal.throwIfAborted();
      await this.#target.commit();
      onStored(number, books);
      return made;
    } catch (error) {
      if (!(error instanceof UnknownOutcome)) signal.throwIfAborted();
      throw error;
    }
  }

  async #storeAs(number: number, name: string, log: PostgresLogWriter): Promise<Made> {
    await log.begin('import', name, number);
    for (const shard of log.shards.all) await log.join(shard);
    let added = 0;
    for (const insert of this.#fresh > 0 ? [STORE_WITH_IDS, STORE] : [])
      added += await this.#write(`${insert} ${this.becomeBooks} order by row`);
    assertAllTaken(added, this.#fresh);
    const changed = this.#changed > 0 ? await this.#change() : 0;
    for (const shard of log.shards.all) await log.leave(shard);
    await log.end(number, added + changed);
    return { added, changed };
  }

  /** Changes books, unless others have changed them since the comparison. @returns how many. */
  async #change(): Promise<number> {
    const changed = await this.#write(`
      update books set ${this.rules.fields.map((name) => `${name} = aside.${name}`)} from ${CHANGES}
      where books.id = aside.book and ${PRESENT_TAG} = present`);
    if (changed < this.#changed) {
      await this.query(`
        create temporary table stored on commit drop as
        select aside.row from aside join books on books.id = aside.book where ${this.equals('books')}`);
      await this.query(this.forgetChanges('not exists (select 1 from stored where stored.row = known.row)'));
    }
    return changed;
  }

  async #write(sql: string): Promise<number> {
    return (await this.#target.client.query(sql)).rowCount ?? 0;
  }

  async close(): Promise<void> {
    this.#lines.destroy();
    await this.#copying.catch(() => {});
    await this.#target.rollBack();
  }

  async #stepsOfIds(hasHistory: boolean): Promise<readonly string[]> {
    const [found] = await this.query<{ highest: number | null }>('select max(book) as highest from aside');
    if (!found?.highest) return [];
    // Before the comparison, so that ids that are free stay free.
    if (!this.#isDryRun) await this.#target.reserveIdsThrough(found.highest);
    const since = RowsAside.findSince(tagIn('log.book', 'log'), WITH_LOG);
    return [
      'create index on aside (book)',
      this.findTwice,
      'analyze known',
      this.findWithIds(PRESENT_TAG, WITH_BOOKS),
      'analyze known',
      `create temporary table since on commit drop as ${since}${hasHistory ? '' : ' and false'}`,
      ...this.settle,
    ];
  }

  get #stepsOfFields(): readonly string[] {
    return this.rules.skipsEqual ? [FIND_HERE, FIND_REPEATED] : [];
  }
}
