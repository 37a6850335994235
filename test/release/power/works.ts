// Owns: the kinds of work during which the power fails, and what must be found after each.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { asCsv } from '../../../src/books/line.ts';
import type { Requester } from '../../support/client.ts';
import { runCommand } from '../../support/command.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/service.ts';
import { waitUntil } from '../../support/wait.ts';
import {
  acknowledgedIn,
  assertKept,
  booksFrom,
  type Found,
  type History,
  HUGE,
  numbersFrom,
  Scribe,
} from './books.ts';
import { examineFile, examineStore, importAgain } from './examine.ts';
import type { Recording } from './recording.ts';

export interface Work {
  /**
   * Records the work.
   * @param variant different ones do it in different ways.
   * @returns notes for the rest, which can be kept as JSON.
   */
  record(recording: Recording, variant: number): Promise<unknown>;
  /** Opens a state with the project's own code. */
  examine(folder: string, notes: unknown): unknown;
  /** @param said the texts that had left the processes before. */
  judge(found: unknown, said: readonly string[], notes: unknown): void;
}

const STORE = 'data/books.db';
const TARGET = 'out/target';

/** The request of the books that are there before anything is recorded. */
const BEFORE = 'before';

/** How work that writes into a store is judged; its notes are the history. */
const WRITTEN = {
  examine: (folder: string) => examineStore(join(folder, STORE)),
  judge: (found: unknown, said: readonly string[], history: unknown) =>
    assertKept(found as Found, history as History, new Set([BEFORE, ...acknowledgedIn(said)])),
};

/** A service that writes in every way, and is killed while it does: on a new store, an older one, or one with a log. */
const writes: Work = {
  async record(recording, variant) {
    const prepare = [storeBefore, olderStore, async () => []][variant % 3] as typeof olderStore;
    const history = [...(await prepare(recording, STORE, 20))];
    recording.begin();
    for (const session of [1, 2, 3]) {
      const scribe = new Scribe(`session${session}`);
      await recording.serve(STORE, async (service) => {
        if (session === 3) return;
        await writeOneByOne(service.client, scribe, 1000 * session);
        await writeTogether(service.client, scribe, 1000 * session + 200);
        await dieWriting(service, scribe, 1000 * session + 900);
      });
      history.push(...scribe.history);
    }
    return history;
  },
  ...WRITTEN,
};

async function writeOneByOne(client: Requester, scribe: Scribe, first: number): Promise<void> {
  for (const book of numbersFrom(first, 6)) {
    const id = await scribe.create(client, book, book % 2 === 0 ? `key-${book}` : undefined);
    await scribe.change(client, id, book, HUGE * book); // soon the log is long enough to be moved into the file
    await scribe.change(client, id, book, 10 * book + 1);
    if (book % 2 === 0) await scribe.remove(client, await scribe.create(client, book + 10), book + 10);
    else await scribe.create(client, book + 20 * (book % 10), `keys-${book}`, 12);
    if (book % 3 === 0) await find(client);
  }
}

async function writeTogether(client: Requester, scribe: Scribe, first: number): Promise<void> {
  const writers = numbersFrom(0, 8).map(async (writer) => {
    const book = first + 10 * writer;
    const id = await scribe.create(client, book, writer % 2 === 0 ? `key-${book}` : undefined);
    await scribe.change(client, id, book, 10 * book + 1);
    await scribe.create(client, book + 1, `keys-${book}`, 2);
    await scribe.change(client, id, book, 10 * book);
    await find(client);
  });
  await Promise.all(writers);
}

/** Kills a service with requests in progress, once one of them is answered. */
async function dieWriting(service: ServiceProcess, scribe: Scribe, first: number): Promise<void> {
  const requests = numbersFrom(first, 4).map((book) => scribe.create(service.client, book, `last-${book}`));
  for (const request of requests) request.catch(() => {});
  await Promise.race(requests);
  await kill(service);
  await Promise.allSettled(requests);
}

/** Bytes. With the smallest pages, the log is soon long enough to be moved into the file. */
const SMALL_PAGES = 512;

/** How often the log starts over. */
const LOGS = 3;

/** A service that writes and indexes while its log is moved into the file and starts over, again and again. */
const startingOver: Work = {
  async record(recording, variant) {
    const history = [...(await olderStore(recording, STORE, 20, SMALL_PAGES))];
    recording.begin();
    const scribes = numbersFrom(1, 4).map((writer) => new Scribe(`writer${writer}`));
    const [first] = scribes as [Scribe];
    await recording.serve(STORE, async (service) => {
      const { client } = service;
      const log = join(recording.disk, `${STORE}-wal`);
      await first.create(client, 1000); // begins the log
      const end = startsOf(log) + LOGS;
      const untilOver = async (work: (round: number) => Promise<unknown>) => {
        for (let round = 0; startsOf(log) < end; round += 1) await work(round);
      };
      const writers = scribes.map((scribe, writer) =>
        untilOver((round) => writeSome(client, scribe, 10_000 * (writer + 1) + 10 * round)),
      );
      const reader = untilOver((round) => (round % 50 === variant ? list(client) : find(client, 1)));
      await Promise.all([...writers, reader]);
      await dieWriting(service, first, 2000);
    });
    await recording.serve(STORE, ({ client }) => first.create(client, 3000));
    return [...history, ...scribes.flatMap((scribe) => scribe.history)];
  },
  ...WRITTEN,
};

async function writeSome(client: Requester, scribe: Scribe, book: number): Promise<void> {
  const id = await scribe.create(client, book, `key-${book}`);
  await scribe.change(client, id, book, 10 * book);
  await scribe.remove(client, await scribe.create(client, book + 1), book + 1);
  await scribe.create(client, book + 2, undefined, 3);
}

/** How often a log has started over, which is in its header (https://sqlite.org/fileformat2.html#walformat). */
function startsOf(log: string): number {
  const header = readFileSync(log).subarray(0, 16);
  return header.length < 16 ? 0 : header.readUInt32BE(12);
}

/** Which sync of each thread fails, after those of a start, in each session. */
const FAILURES = ['error=EIO:when=9', 'error=EIO:when=20', undefined];

/**
 * Services that end at a failed sync, with writes in the log that are not on disk; the last one is sound.
 * @param isRead whether another process keeps that one from emptying the log.
 */
const failing = (isRead: boolean): Work => ({
  async record(recording) {
    const history = [...(await storeBefore(recording, STORE, 400))];
    recording.begin();
    for (const [session, failures] of FAILURES.entries()) {
      const scribe = new Scribe(`session${session}`);
      const first = 1000 * (session + 1);
      const write = async (client: Requester, book: number) => {
        const id = await scribe.create(client, book, `key-${book}`);
        await scribe.change(client, id, book, 10 * book + 1);
      };
      const work = async ({ client }: ServiceProcess) => {
        for (const book of numbersFrom(first, 8)) {
          await Promise.all([succeeds(write(client, book)), succeeds(write(client, book + 10))]);
          await succeeds(find(client)); // what the index writes is covered by the next sync, which may fail
        }
        let book = first + 100;
        while (failures !== undefined && (await succeeds(scribe.create(client, book, undefined, 12))))
          book += 12;
      };
      const reader = new DatabaseSync(join(recording.disk, STORE), { readOnly: true });
      if (isRead && failures === undefined) reader.exec('begin; select 1 from books limit 1');
      await recording.serve(STORE, work, failures);
      reader.close();
      history.push(...scribe.history);
    }
    return history;
  },
  ...WRITTEN,
});

/** @returns whether it is answered; otherwise the service has ended. */
async function succeeds(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    assert.match((error as Error).message, /^no answer: /);
    return false;
  }
}

/** Rows that are written together, since they are more than a mebibyte, which is stored together; and all. */
const WRITTEN_ROWS = 120;
const PADDING = 'x'.repeat(12_000);
/** Rows that have 64 KiB: a transaction has so many, or a multiple of that. */
const TOGETHER = 6;
const ROWS = numbersFrom(1001, 2 * WRITTEN_ROWS + 10);

/** An import, after which a service makes the index. */
const imported: Work = {
  async record(recording, variant) {
    const history = await storeBefore(recording, STORE, 20);
    recording.begin();
    const options = [
      ['--ids', 'new'],
      ['--ids', 'keep'],
      ['--ids', 'new', '--on-duplicate', 'add'],
    ][variant % 3] as string[];
    await recording.run(['import', '-', '--format', 'csv', ...options], STORE, async (stdin, syncs) => {
      const rows = booksFrom(ROWS[0] as number, ROWS.length).map((book) =>
        asCsv({ id: book.year, ...book }).replace('\n', `,${PADDING}\n`),
      );
      stdin.write('id,title,author,year,note\n');
      // Without an id, rows are compared with all books, as a whole.
      while (variant % 3 > 0 && rows.length > WRITTEN_ROWS) {
        const before = syncs();
        stdin.write(rows.splice(0, WRITTEN_ROWS).join(''));
        await waitUntil(() => syncs() > before);
      }
      stdin.end(rows.join(''));
    });
    await recording.serve(STORE, ({ client }) => waitUntil(async () => (await find(client)) >= 0));
    return history;
  },
  async examine(folder) {
    const found = await examineStore(join(folder, STORE));
    return {
      found,
      again: await importAgain(join(folder, STORE), booksFrom(ROWS[0] as number, ROWS.length)),
    };
  },
  judge(result, said, history) {
    const { found, again } = result as { found: Found; again: Found['books'] };
    const isRow = ([, book]: Found['books'][number]) => book >= (ROWS[0] as number);
    WRITTEN.judge({ ...found, books: found.books.filter((book) => !isRow(book)) }, said, history);
    const rows = found.books.filter(isRow).map(([, book]) => book);
    // The difference of long lists would take gigabytes.
    const wrong = rows.findIndex((row, index) => row !== ROWS[index]);
    assert.equal(wrong, -1, 'rows are missing before the last one');
    const isDone = said.some((text) => / rows read: /.test(text));
    const isWhole = rows.length === ROWS.length || (!isDone && rows.length % TOGETHER === 0);
    assert.ok(isWhole, `${rows.length} rows are no whole transactions`);
    const repeated = again.filter(isRow).map(([, book]) => book);
    assert.ok(new Set(ROWS).isSubsetOf(new Set(repeated)), 'after another import');
    assert.equal(repeated.length, ROWS.length, 'after another import');
  },
};

interface Replaced {
  readonly source: Found['books'];
  /** Of the target, one after the other; null where there is none. */
  readonly contents: readonly unknown[];
}

/**
 * Work that replaces a target as a whole: it has one of two contents in between, and the last one that was said.
 * @param done a text that a process says when it has put the next content in place.
 */
function replacing(
  done: RegExp,
  record: (recording: Recording, variant: number) => Promise<Replaced>,
  read: (file: string) => unknown,
): Work {
  return {
    record,
    examine: async (folder): Promise<unknown[]> => [
      examineFile(join(folder, STORE)),
      await read(join(folder, TARGET)),
    ],
    judge(found, said, notes) {
      const [source, target] = found as unknown[];
      const { source: expected, contents } = notes as Replaced;
      assert.deepEqual(source, expected, 'the source');
      const times = said.filter((text) => done.test(text)).length;
      const possible = contents.slice(times, times + 2).map((content) => JSON.stringify(content));
      assert.ok(possible.includes(JSON.stringify(target)), 'the target is neither the old nor the new one');
    },
  };
}

const backedUp = replacing(
  /backed up to/,
  async (recording, variant) => {
    const source = foundOf(await storeBefore(recording, STORE, 40));
    mkdirSync(dirname(join(recording.disk, TARGET)));
    const older = 'data/older.db';
    const old = variant % 2 === 0 ? foundOf(await storeBefore(recording, older, 10, 500)) : null;
    if (old !== null) await backUp(recording, older, TARGET);
    recording.begin();
    await recording.run(['backup', join(recording.disk, TARGET)].concat(old ? '--overwrite' : []), STORE);
    await recording.run(['backup', join(recording.disk, TARGET), '--overwrite'], STORE);
    return { source, contents: [old, source, source] };
  },
  examineFile,
);

const restored = replacing(
  /books (restored|copied) to/,
  async (recording, variant) => {
    const source = foundOf(await storeBefore(recording, STORE, 40));
    const old = await targetBefore(recording, variant);
    await backUp(recording, STORE, 'out/backup.db');
    recording.begin();
    await recording.run(['restore', join(recording.disk, 'out/backup.db'), '--overwrite'], TARGET);
    await recording.run(['copy', recording.urlOf(STORE), recording.urlOf(TARGET), '--overwrite'], STORE);
    return { source, contents: [old ?? [], source, source] };
  },
  async (file) => (await examineStore(file)).books,
);

const exported = replacing(
  /books exported to/,
  async (recording, variant) => {
    const source = foundOf(await storeBefore(recording, STORE, 600));
    const file = join(recording.disk, TARGET);
    mkdirSync(dirname(file));
    const contents: (string | null)[] = [variant % 2 === 0 ? null : 'old\n'];
    if (contents[0] != null) writeFileSync(file, contents[0]);
    recording.begin();
    for (const format of ['csv', 'json', 'jsonl']) {
      await recording.run(['export', file, '--format', format, '--overwrite'], STORE);
      contents.push(readFileSync(file, 'utf8'));
    }
    return { source, contents };
  },
  (file) => (existsSync(file) ? readFileSync(file, 'utf8') : null),
);

export const WORKS: Readonly<Record<string, Work>> = {
  writes,
  'logs that start over': startingOver,
  'syncs that fail': failing(false),
  'syncs that fail beside a reader': failing(true),
  'an import': imported,
  'a backup': backedUp,
  'a restore': restored,
  'an export': exported,
};

/** Books that are there, and durable, before a recording. A service has been killed there, so some are in the log. */
async function storeBefore(recording: Recording, file: string, count: number, first = 1): Promise<History> {
  mkdirSync(dirname(join(recording.disk, file)), { recursive: true });
  const service = await startServiceProcess(recording.urlOf(file));
  const scribe = new Scribe();
  const half = Math.floor(count / 2);
  await scribe.create(service.client, first, undefined, half);
  await waitUntil(async () => (await find(service.client)) === half);
  await scribe.create(service.client, first + half, undefined, count - half);
  await kill(service);
  return scribe.history.map((write) => ({ ...write, request: BEFORE }));
}

/** Makes a backup before anything is recorded. */
async function backUp(recording: Recording, store: string, file: string): Promise<void> {
  const args = ['backup', join(recording.disk, file)];
  const { code, stderr } = await runCommand(args, { DB_URL: recording.urlOf(store) });
  assert.equal(code, 0, stderr);
}

/** A store of an older structure, without a log. */
async function olderStore(
  recording: Recording,
  file: string,
  count: number,
  pageSize = 4096,
): Promise<History> {
  mkdirSync(dirname(join(recording.disk, file)));
  const db = new DatabaseSync(join(recording.disk, file));
  db.exec(`pragma page_size = ${pageSize}`);
  db.exec('create table books (id integer primary key autoincrement, title text, author text, year integer)');
  const insert = db.prepare('insert into books (title, author, year) values (?, ?, ?)');
  const books = booksFrom(1, count);
  for (const { title, author, year } of books) insert.run(title, author, year);
  db.close();
  return books.map(({ year }) => ({ request: BEFORE, key: undefined, books: [[year, year]] }));
}

/** Makes a catalogue with a log, which is replaced, or in every second variant only its folder. */
async function targetBefore(recording: Recording, variant: number): Promise<Found['books'] | null> {
  if (variant % 2 === 0) return foundOf(await storeBefore(recording, TARGET, 10, 500));
  mkdirSync(dirname(join(recording.disk, TARGET)));
  return null;
}

function foundOf(history: History): Found['books'] {
  return history.flatMap(({ books, ids = [] }) =>
    books.map(([book, version], place) => [ids[place] ?? 0, book, version ?? 0] as const),
  );
}

async function kill(service: ServiceProcess): Promise<void> {
  const ended = once(service.process, 'close');
  service.process.kill('SIGKILL');
  await ended;
}

/** Brings the index up to date, so that its writes lie between the others. */
async function find(client: Requester, limit = 1000): Promise<number> {
  const { status, data } = await client.request('GET', `/books?q=title&limit=${limit}`);
  return status === 200 ? data.length : -1;
}

async function list(client: Requester): Promise<void> {
  assert.equal((await client.request('GET', '/books')).status, 200);
}
