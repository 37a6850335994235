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
import { FIELDS, ID_AND_FIELDS } from '../columns.ts';
import type { Comparison, ImportWork, Load, LoadRow, LoadRules } from '../load.ts';
import type { Query } from '../query.ts';
import { HERE, judgedBy, REPEATED, RowsAside } from '../rows-aside.ts';
import type { PostgresLogWriter } from './undo.ts';

// Dropped with their transaction: a pooler may give each transaction another connection. A row may be known twice: then it is
// `HERE`, the lower number.
const TABLES = `
  create temporary table aside on commit drop as
    select null::bigint as line, null::bigint as book, ${FIELDS}, null::text as original, null::text as doubt from books with no data;
  alter table aside add row bigint generated always as identity;
  create temporary table known (row bigint not null, what integer not null, title text) on commit drop`;
const COPY = `copy aside (line, book, ${FIELDS}, original, doubt) from stdin with (format csv, encoding 'UTF8')`;

/** Rows that equal an earlier one: their texts are compared only if their hashes are equal. */
const hash = (row: string) => `hash_record_extended(row(${FIELD_NAMES.map((name) => `${row}${name}`)}), 0)`;
const FIND_REPEATED = `
  insert into known select row, ${REPEATED} from (
    select aside.row, row_number() over (partition by ${FIELD_NAMES.map((name) => `aside.${name}`)} order by aside.row) as place
    from (select ${hash('')} as hash from aside group by 1 having count(*) > 1) as several
    join aside on ${hash('aside.')} = several.hash
  ) as places where place > 1`;
const FIND_HERE = `insert into known select aside.row, ${HERE} from aside join books using (${FIELDS})`;

const FIND_IDS_HERE = `
  insert into known select aside.row, ${judgedBy('books', HERE)} from aside join books on books.id = aside.book`;
const FIND_IDS_REPEATED = `
  insert into known select aside.row, ${judgedBy('first', REPEATED)}
    from (select min(row) as row, book from aside group by book having count(*) > 1) as several
    join aside as first on first.row = several.row join aside on aside.book = several.book
    where aside.row > several.row and not exists (select from known where known.row = aside.row)`;

const STORE = `insert into books (${FIELDS}) select ${FIELDS} from aside where`;
const STORE_WITH_IDS = `insert into books (${ID_AND_FIELDS}) select book, ${FIELDS} from aside where`;

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
  /** How many of the rows are new. */
  #fresh = 0;

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
      return `${row.line},${row.id ?? ''},${asCsvFields(row).slice(0, -1)},${kept},${row.doubt ?? ''}\n`;
    });
    if (!this.#lines.write(lines.join(''))) await Promise.race([once(this.#lines, 'drain'), this.#copying]);
  }

  async compare(signal: AbortSignal): Promise<Comparison> {
    this.#lines.end();
    await this.#copying;
    await this.query('analyze aside');
    for (const step of await this.#steps()) {
      signal.throwIfAborted();
      await this.query(step);
    }
    await this.query('analyze known');
    const comparison = await this.counts();
    this.#fresh = comparison.fresh.count;
    return comparison;
  }

  async store(
    work: ImportWork,
    signal: AbortSignal,
    onStored: (number: number, books: number) => void,
  ): Promise<void> {
    const { name, fingerprint, owner, number: begun } = work;
    if (this.#fresh === 0 && begun === undefined) return;
    const { client } = this.#target;
    // The server finishes its statement, finds the connection closed, and rolls back.
    const leave = () => client.end();
    signal.throwIfAborted();
    signal.addEventListener('abort', leave);
    try {
      const log = await this.#target.logWriter();
      const number = begun ?? (await log.imports.begin(fingerprint, owner));
      if (this.#fresh > 0) await this.#storeAs(number, name, log);
      const done = { state: 'stored', books: this.#fresh, report: work.report(true) } as const;
      // A report of a service stays forgotten; that of an import that begins here is new.
      const isOwn = await log.imports.keep(number, owner, begun ? done : { ...done, fingerprint });
      if (!isOwn) throw new NoLongerOpen();
      signal.removeEventListener('abort', leave);
      signal.throwIfAborted();
      await this.#target.commit();
      onStored(number, this.#fresh);
    } catch (error) {
      if (!(error instanceof UnknownOutcome)) signal.throwIfAborted();
      throw error;
    }
  }

  async #storeAs(number: number, name: string, log: PostgresLogWriter): Promise<void> {
    await log.begin('import', name, number);
    for (const shard of log.shards.all) await log.join(shard);
    const stored = await this.#target.client.query(
      `${this.rules.keepsIds ? STORE_WITH_IDS : STORE} ${this.becomeBooks} order by row`,
    );
    assertAllTaken(stored.rowCount ?? 0, this.#fresh);
    for (const shard of log.shards.all) await log.leave(shard);
    await log.end(number, this.#fresh);
  }

  async close(): Promise<void> {
    this.#lines.destroy();
    await this.#copying.catch(() => {});
    await this.#target.rollBack();
  }

  async #steps(): Promise<readonly string[]> {
    const { keepsIds, skipsEqual } = this.rules;
    if (!keepsIds) return skipsEqual ? [FIND_REPEATED, FIND_HERE] : [];
    const [found] = await this.query<{ highest: number | null }>('select max(book) as highest from aside');
    // Before the comparison, so that ids that are free stay free.
    if (!this.#isDryRun && found?.highest) await this.#target.reserveIdsThrough(found.highest);
    return [FIND_IDS_HERE, 'analyze known', FIND_IDS_REPEATED];
  }
}
