// Owns: programs that follow the changes of a catalogue while many write to it, two services on its store are killed again and
// again, and answers get lost; and the check that the copy of each ends equal to the list of books (rules H1 to H3).

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, linksOf } from '../../conformance/answers.ts';
import type { Book } from '../../conformance/service.ts';
import type { Requester } from './client.ts';
import { connectTo } from './postgres.ts';
import { random, randomSequence } from './random.ts';
import { Mortal } from './retrying.ts';
import { ENVIRONMENT, startServiceProcess } from './service.ts';
import { executeOn } from './sql.ts';
import { dieYoung, untilQuiet } from './sudden-death.ts';
import { waitUntil } from './wait.ts';

const WRITERS = 6;

/** Shares of the operations; the others change a book. */
const CREATIONS = 0.3;
const ARRAYS = 0.05;
const REMOVALS = 0.18;
const UNDOS = 0.1;
const PROGRAMS = 0.02;

/** The most books of an array, and of one array in so many: the log has one row for them together. */
const FEW_BOOKS = 8;
const MANY_BOOKS = 700;
const ONE_WITH_MANY = 40;

/** Books that the writers know, at most. */
const KNOWN = 300;

/** Of so many deaths, one hits both services, and another one a start. */
const BOTH = 4;
const YOUNG = 6;

/** Milliseconds: of rest after a request that failed, and between two looks of a follower that does not wait; and of a start at least. */
const REST = 5;
const REST_OF_DEAD = 50;
const START = 300;

/** Of so many pages, a follower begins again after one. */
const AGAIN = 400;

/** Seconds that a request may wait. Books are written all the time, so none waits so long for a change. */
const LONGEST_WAIT = 60;

interface Change {
  readonly id: number;
  readonly book: Book | null;
}

/** What all of them went through. */
class Figures {
  operations = 0;
  kills = 0;
  'requests without an answer' = 0;
  'answers with 503' = 0;
  'changes by SQL' = 0;
  'undone books' = 0;
  'books that undos left' = 0;
  'transactions of other programs' = 0;
  pages = 0;
  'changes that were read' = 0;
  'waits that ended with a change' = 0;
}

interface Context {
  after(work: () => void): void;
}

/**
 * Follows through so many deaths. There must be no books before.
 * @param life operations between two deaths: at random, half as many to one and a half times as many.
 */
export async function followThroughDeaths(
  context: Context,
  dbUrl: string,
  deaths: number,
  life: number,
  progress: (figures: Figures) => void = () => {},
): Promise<Figures> {
  const figures = new Figures();
  const start = () => startServiceProcess(dbUrl);
  const services = [await Mortal.start(context, start), await Mortal.start(context, start)] as const;
  const writers = new Writers(services, dbUrl, figures);
  const followers = ['without a wait', 'waits', 'waits', 'begins again', 'is slow', 'waits a second'].map(
    (habit, position) => new Follower(services, habit, position, figures),
  );
  const work = Promise.all([
    ...Array.from({ length: WRITERS }, (_, position) => writers.write(position)),
    ...(dbUrl.startsWith('sqlite:') ? [] : [1, 2].map((number) => writers.keepOpen(context, number))),
  ]);
  const following = Promise.all(followers.map((follower) => follower.follow()));
  const both = Promise.all([work, following]);
  try {
    let next = 0;
    for (let death = 1; figures.kills < deaths; death += 1) {
      next += Math.ceil(life * (0.5 + random())); // one works while the other one starts
      await waitUntil(() => figures.operations >= next, both);
      const victim = services[random() < 0.5 ? 0 : 1];
      const victims = death % BOTH === 0 ? services : [victim];
      figures.kills += victims.length;
      await Promise.all(victims.map((one) => one.die()));
      if (death % YOUNG === 0) {
        figures.kills += 1;
        await dieYoung({ ...ENVIRONMENT, DB_URL: dbUrl }, START + random() * START);
      }
      await Promise.all(victims.map((one) => one.live()));
      progress(figures);
    }
    writers.isStopped = true;
    await work;
    for (const follower of followers) follower.isStopped = true;
    await writers.create(); // ends the waits
    await following;
    for (const service of services) {
      await service.die();
      await service.live();
    }
    await untilQuiet(dbUrl); // no write is in progress any more
    for (const follower of followers) await follower.readAll();
    for (const service of services) {
      const books = await service.direct.list();
      for (const follower of followers) follower.compare(books);
    }
    return figures;
  } finally {
    writers.isStopped = true;
    for (const follower of followers) follower.isStopped = true;
    for (const service of services) await service.die();
  }
}

type Services = readonly [Mortal, Mortal];

/** One of them, unless it is known to be dead: as behind a proxy. */
function oneOf(services: Services, draw: () => number): Mortal {
  const [one, other] = draw() < 0.5 ? services : services.toReversed();
  return (one?.isAlive ? one : other) as Mortal;
}

/** @returns undefined if the request may have been carried out or not: it has no answer, or 503. */
async function ask(
  figures: Figures,
  service: Mortal,
  ...request: Parameters<Requester['request']>
): Promise<Answer | undefined> {
  try {
    const answer = await service.request(...request);
    if (answer.status !== 503) return answer;
    figures['answers with 503'] += 1;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    figures['requests without an answer'] += 1;
  }
  await pause(service.isAlive ? REST : REST_OF_DEAD);
  return undefined;
}

/** Programs that write through the services, and by SQL. */
class Writers {
  readonly #services: Services;
  readonly #dbUrl: string;
  readonly #figures: Figures;
  /** Books that may be there. */
  readonly #known: number[] = [];
  /** Numbers of undos, the newest last. */
  readonly #undos: number[] = [];
  #keys = 0;
  #newIds = 0;
  isStopped = false;

  constructor(services: Services, dbUrl: string, figures: Figures) {
    this.#services = services;
    this.#dbUrl = dbUrl;
    this.#figures = figures;
  }

  async write(position: number): Promise<void> {
    const draw = randomSequence(100 + position);
    for (; !this.isStopped; this.#figures.operations += 1) await this.#writeOne(draw);
  }

  /** Stores a book, once at least. */
  async create(): Promise<void> {
    while ((await this.#ask(random, 'POST', '/book', { title: 'last' })) === undefined);
  }

  /** Keeps one transaction after the other open on PostgreSQL, in which books are stored, for up to several lives of a service. */
  async keepOpen(context: Context, number: number): Promise<void> {
    const draw = randomSequence(200 + number);
    const program = await connectTo(context, this.#dbUrl);
    while (!this.isStopped) {
      await program.query('begin');
      for (let book = draw() * 4; book > 0; book -= 1) {
        await program.query(`insert into books (title) values ('in transaction ${number}')`);
        await program.query("savepoint a; insert into books (title) values ('never'); rollback to a");
      }
      const end = this.#figures.operations + draw() * 600;
      await waitUntil(() => this.isStopped || this.#figures.operations >= end);
      await program.query(
        'update books set year = year + 1 where id in (select id from books where random() < 0.02 limit 4 for update skip locked)',
      );
      await program.query(draw() < 0.8 ? 'commit' : 'rollback');
      this.#figures['transactions of other programs'] += 1;
    }
  }

  async #writeOne(draw: () => number): Promise<void> {
    let kind = draw();
    const isKind = (share: number) => {
      kind -= share;
      return kind < 0;
    };
    const id = this.#known[Math.floor(draw() * this.#known.length)];
    const fields = { title: `title ${Math.floor(draw() * 1e6)}`, year: Math.floor(draw() * 2000) };
    if (id === undefined || isKind(CREATIONS)) {
      const answer = await this.#ask(draw, 'POST', '/book', fields, draw() < 0.5);
      if (answer !== undefined) this.#note(answer.data.id);
    } else if (isKind(ARRAYS)) {
      const most = draw() * ONE_WITH_MANY < 1 ? MANY_BOOKS : FEW_BOOKS;
      const books = Array.from({ length: Math.floor(draw() * most) }, (_, year) => ({ ...fields, year }));
      const answer = await this.#ask(draw, 'POST', '/books', books, draw() < 0.5);
      for (const stored of answer?.data.slice(0, FEW_BOOKS) ?? []) this.#note(stored);
    } else if (isKind(REMOVALS)) await this.#ask(draw, 'DELETE', `/book/${id}`);
    else if (isKind(UNDOS)) await this.#undo(draw, id);
    else if (isKind(PROGRAMS)) await this.#execute(draw, id);
    else await this.#ask(draw, 'PUT', `/book/${id}`, draw() < 0.5 ? fields : { year: fields.year });
  }

  #note(id: number): void {
    assert.equal(typeof id, 'number');
    this.#known.push(id);
    if (this.#known.length > KNOWN) this.#known.splice(Math.floor(random() * KNOWN), 1);
  }

  /** Takes a change of a book back, or an undo. */
  async #undo(draw: () => number, id: number): Promise<void> {
    let change: number | null | undefined = draw() < 0.3 ? this.#undos.pop() : undefined;
    if (change === undefined) {
      const answer = await this.#ask(draw, 'GET', `/book/${id}/history`);
      const states: readonly { change: number | null }[] = answer?.data ?? [];
      change = states[Math.floor(draw() ** 2 * states.length)]?.change;
    }
    if (!change) return;
    const answer = await this.#ask(draw, 'POST', '/undo', { change }, draw() < 0.5);
    if (answer === undefined) return;
    this.#figures['undone books'] += answer.data.undone;
    this.#figures['books that undos left'] += answer.data.left.length;
    if (answer.data.change !== null) this.#undos.push(answer.data.change);
  }

  async #execute(draw: () => number, id: number): Promise<void> {
    const rest = Math.floor(draw() * 19);
    const statements = [
      `update books set year = year + 1 where id % 19 = ${rest}`,
      `delete from books where id % 19 = ${rest}`,
      "insert into books (title) values ('by SQL'), ('by SQL')",
      `update books set id = ${this.#newId()} where id = ${id}`,
      `update books set title = 'by SQL' where id = ${id}`,
    ];
    const statement = statements[Math.floor(draw() * statements.length)] as string;
    const isLocked = await executeOn(this.#dbUrl, statement).then(
      () => false,
      (error) => String(error.message).includes('deadlock'),
    );
    if (!isLocked) this.#figures['changes by SQL'] += 1;
  }

  /** SQL for an id that no book has had. */
  #newId(): string {
    this.#newIds += 1;
    return this.#dbUrl.startsWith('sqlite:') ? `${this.#newIds * 2 ** 32}` : "nextval('books_id_seq')";
  }

  /** @param isKeyed whether it is sent until it is answered. */
  async #ask(draw: () => number, method: string, path: string, body?: unknown, isKeyed = false) {
    this.#keys += 1;
    const headers: Record<string, string> = isKeyed ? { 'idempotency-key': `key-${this.#keys}` } : {};
    for (;;) {
      const service = oneOf(this.#services, draw);
      const answer = await ask(this.#figures, service, method, path, { body, headers });
      if (answer === undefined && isKeyed) continue;
      const isBook = path.startsWith('/book/');
      const expected = path === '/book' || path === '/books' ? [201] : isBook ? [200, 404] : [200];
      if (answer) assert.ok(expected.includes(answer.status), `${method} ${path}: ${answer.message}`);
      return answer?.status === 404 ? undefined : answer;
    }
  }
}

/** A program that keeps a copy of the catalogue by following its changes, through both services. */
class Follower {
  readonly #services: Services;
  readonly #habit: string;
  readonly #draw: () => number;
  readonly #figures: Figures;
  readonly #books = new Map<number, Book>();
  #path = '/changes';
  isStopped = false;

  constructor(services: Services, habit: string, position: number, figures: Figures) {
    this.#services = services;
    this.#habit = habit;
    this.#draw = randomSequence(300 + position);
    this.#figures = figures;
  }

  async follow(): Promise<void> {
    const wait = this.#habit === 'waits' ? LONGEST_WAIT : this.#habit === 'waits a second' ? 1 : 0;
    for (let page = 1; !this.isStopped; page += 1) {
      const changes = await this.#read(wait);
      if (wait === 0 && changes === 0) await pause(REST);
      if (this.#habit === 'is slow') await pause(this.#draw() * 100 * REST);
      if (this.#habit !== 'begins again' || page % AGAIN !== 0) continue;
      this.#path = '/changes';
      this.#books.clear();
    }
  }

  /** Reads up to a page without changes. */
  async readAll(): Promise<void> {
    while ((await this.#read(0)) !== 0);
  }

  /** Reads a page of a random size. @returns its changes; undefined without an answer. */
  async #read(wait: number): Promise<number | undefined> {
    const service = oneOf(this.#services, this.#draw);
    const limit = Math.ceil(this.#draw() ** 3 * 1000);
    const path = `${this.#path.replace(/limit=\d+&/, '').replace(/\??$/, this.#path.includes('?') ? '&' : '?')}limit=${limit}`;
    const headers: Record<string, string> = wait === 0 ? {} : { prefer: `wait=${wait}` };
    const answer = await ask(this.#figures, service, 'GET', path, { headers });
    if (answer === undefined) return undefined;
    assert.equal(answer.status, 200, `a follower that ${this.#habit}: ${answer.message}`);
    const changes = answer.data as Change[];
    assert.ok(changes.length > 0 || wait < LONGEST_WAIT, 'a request that waits gets no change');
    assert.equal(new Set(changes.map(({ id }) => id)).size, changes.length, 'a book is in a page twice');
    for (const { id, book } of changes) {
      if (book === null) this.#books.delete(id);
      else this.#books.set(id, book);
    }
    this.#path = linksOf(answer).next ?? assert.fail('a page has no link');
    this.#figures.pages += 1;
    this.#figures['changes that were read'] += changes.length;
    if (wait > 0 && changes.length > 0) this.#figures['waits that ended with a change'] += 1;
    return changes.length;
  }

  compare(books: readonly Book[]): void {
    const copy = [...this.#books.values()].toSorted((one, other) => one.id - other.id);
    const both = new Set([copy, books].map((one) => JSON.stringify(one)));
    if (both.size > 1) assert.deepEqual(copy, books, `the copy of a follower that ${this.#habit}`);
  }
}
