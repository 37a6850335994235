// Owns: the work that a service does for its clients while the power fails.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ServiceProcess } from '../../support/service.ts';
import { booksFrom, type History, Scribe } from './books.ts';
import { BEFORE, find, kill, STORE, storeBefore, type Work, WRITTEN, type Written } from './work.ts';

/** Syncs that fail, of each thread: not those of the start, and not every one. */
const FAILURES = 'error=EIO:when=9+4';

/** Requests in progress when a service is killed. */
const UNANSWERED = 4;

/** Work that a service does for its clients. */
function served(
  work: (service: ServiceProcess, scribe: Scribe, session: number) => Promise<void>,
  sessions = 1,
): Work {
  return {
    async record(recording) {
      const history = await storeBefore(recording, STORE, 20);
      recording.begin();
      for (let session = 1; session <= sessions; session += 1) {
        const scribe = new Scribe(`session${session}`);
        await recording.serve(STORE, async (service) => {
          await work(service, scribe, session);
          if (session < sessions) await dieWriting(service, scribe, session);
        });
        history.push(...scribe.history);
      }
      return { history } satisfies Written;
    },
    ...WRITTEN,
  };
}

/** Kills a service with requests in progress, once one of them is answered. */
async function dieWriting(service: ServiceProcess, scribe: Scribe, session: number): Promise<void> {
  const requests = Array.from({ length: UNANSWERED }, (_, number) =>
    scribe.create(service.client, 900 + 10 * session + number, `last-${session}-${number}`),
  );
  for (const request of requests) request.catch(() => {});
  await Promise.race(requests);
  await kill(service);
  await Promise.allSettled(requests);
}

export const singly = served(async ({ client }, scribe, session) => {
  const ids = new Map<number, number>();
  for (let step = 0; step < 24; step += 1) {
    const book = 100 * session + step;
    if (step % 3 !== 2)
      ids.set(book, await scribe.create(client, book, step % 2 === 0 ? `key-${book}` : undefined));
    else await scribe.change(client, ids.get(book - 1) as number, book - 1, 10 * book);
    if (step % 6 === 4) await scribe.remove(client, await scribe.create(client, book + 50), book + 50);
    if (step % 8 === 7) await find(client);
  }
}, 2);

export const together = served(async ({ client }, scribe, session) => {
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    const book = 100 * session + 10 * writer;
    const id = await scribe.create(client, book, writer % 2 === 0 ? `key-${book}` : undefined);
    await scribe.change(client, id, book, 10 * book + 1);
    const other = await scribe.create(client, book + 1);
    await scribe.change(client, id, book, 10 * book + 2);
    await scribe.remove(client, other, book + 1);
    await find(client);
    await scribe.createMany(client, book + 2, 2, `keys-${book}`);
  });
  await Promise.all(writers);
}, 2);

export const arrays = served(async ({ client }, scribe, session) => {
  for (let array = 0; array < 4; array += 1) {
    const first = 1000 * session + 100 * array + 1;
    const key = array % 2 === 0 ? `key-${first}` : undefined;
    const [id = 0] = await scribe.createMany(client, first, 12 + 4 * array, key);
    await Promise.all([scribe.change(client, id, first, first + 9), find(client)]);
  }
}, 2);

/** A service whose syncs fail now and then, and which dies right after one has; and the next one, in which none fails. */
export const failing: Work = {
  async record(recording) {
    const history = await storeBefore(recording, STORE, 20);
    recording.begin();
    for (let session = 1; session <= 3; session += 1) {
      const scribe = new Scribe(`session${session}`);
      const first = 1000 * session;
      const write = async ({ client }: ServiceProcess, book: number) => {
        const id = await scribe.create(client, book, `key-${book}`);
        await scribe.change(client, id, book, 10 * book + 1);
      };
      if (session === 3) {
        await recording.serve(STORE, (service) => write(service, first));
      } else {
        const work = async (service: ServiceProcess) => {
          for (let book = first; book < first + 16; book += 2) {
            await Promise.all([failsOrNot(write(service, book)), failsOrNot(write(service, book + 1))]);
            if (book % 4 === 0) await find(service.client);
          }
          for (
            let book = first + 100;
            await failsOrNot(scribe.createMany(service.client, book, 12));
            book += 12
          );
          await kill(service);
        };
        await recording.serve(STORE, work, FAILURES);
      }
      history.push(...scribe.history);
    }
    return { history } satisfies Written;
  },
  ...WRITTEN,
};

/** @returns whether it succeeded; otherwise the answer was 503. */
async function failsOrNot(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch (error) {
    assert.match((error as Error).message, /^Service unavailable/);
    return false;
  }
}

/** Enough pages in the log that it is moved into the file, and begins again. */
export const emptied = served(async ({ client }, scribe) => {
  const id = await scribe.create(client, 100);
  for (let round = 1; round <= 6; round += 1) {
    await scribe.change(client, id, 100, 10_000 * round);
    await scribe.change(client, id, 100, 10_000 * round + 1);
    await scribe.create(client, 100 + round, `key-${round}`);
    await find(client);
  }
});

export const started: Work = {
  async record(recording, variant) {
    const file = join(recording.disk, STORE);
    const history: History[number][] = [];
    if (variant % 2 === 1) {
      mkdirSync(dirname(file));
      const books = booksFrom(1, 20);
      const db = new DatabaseSync(file); // of an older structure, without a log
      db.exec(
        'create table books (id integer primary key autoincrement, title text, author text, year integer)',
      );
      const insert = db.prepare('insert into books (title, author, year) values (?, ?, ?)');
      for (const { title, author, year } of books) insert.run(title, author, year);
      db.close();
      history.push(
        ...books.map(({ year }) => ({ request: BEFORE, key: undefined, books: [[year, year]] as const })),
      );
    }
    recording.begin();
    for (let session = 1; session <= 4; session += 1) {
      const scribe = new Scribe(`session${session}`);
      await recording.serve(STORE, async (service) => {
        const id = await scribe.create(service.client, 100 * session, `key-${session}`);
        if (session % 2 === 1) await find(service.client);
        await scribe.change(service.client, id, 100 * session, 100 * session + 1);
        if (session < 3) await dieWriting(service, scribe, session);
      });
      history.push(...scribe.history);
    }
    return { history } satisfies Written;
  },
  ...WRITTEN,
};
