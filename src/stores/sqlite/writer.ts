// Owns: the one connection that writes to a SQLite file, in a separate thread, so that waiting for a disk never
// delays another request. Requests that wait together are committed together, with one sync (group commit), and
// acknowledged only after it.
// Does not: read for the service: `store.ts` does, on its own connections.

import type { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { Book, BookFields } from '../../books/book.ts';
import { meets } from '../../books/condition.ts';
import {
  ageOfExpired,
  type BookGroup,
  type BookUpdate,
  type ConditionalChange,
  type ConditionalOutcome,
  type GroupOutcome,
  KEY_CLOCK,
  type Left,
  untilHeavy,
} from '../../books/store.ts';
import type { Times } from '../../times.ts';
import { OpenStore } from './file.ts';
import { emptyLog } from './long-log.ts';
import { type NewId, NewIds } from './new-ids.ts';
import { now, openForWriting, retryWhileBusy } from './structure.ts';
import type { ThreadData, ThreadMessage, Ticketed } from './thread.ts';

export type WriteCall =
  | { readonly kind: 'insert'; readonly items: readonly BookFields[] }
  | { readonly kind: 'insertGroups'; readonly items: readonly BookGroup[] }
  | { readonly kind: 'update'; readonly items: readonly BookUpdate[] }
  | { readonly kind: 'remove'; readonly items: readonly number[] }
  | { readonly kind: 'changeIf'; readonly items: readonly ConditionalChange[] };

export type WriteRequest = WriteCall & {
  /** Milliseconds of `now()`, after which the request is not started: its callers are about to give up. */
  readonly deadline: number;
};

export type WriteAnswers =
  | readonly number[]
  | readonly GroupOutcome[]
  | readonly (ConditionalOutcome | Left)[]
  | readonly boolean[];

/** Moves the log into the file, so that it starts again. The answer has what `emptyLog` of long-log.ts returns. */
export interface EmptyLog {
  readonly kind: 'emptyLog';
}

type Request = Ticketed<WriteRequest>;

/** The most requests that are committed together. */
const GROUP_SIZE = 64;

/** Keys that have expired are removed in passing: so many at a time. */
const EXPIRED_KEYS = 1000;

/** A constraint or a trigger that an operator has added. The low byte of an error's code is its kind. */
const SQLITE_CONSTRAINT = 19;

/** A trigger that an operator has added skips a write. */
class Skipped extends Error {
  readonly errcode = SQLITE_CONSTRAINT;

  constructor() {
    super('a trigger has skipped the write');
  }
}

function serve(port: MessagePort, { path, times }: ThreadData): void {
  const writer = new Writer(openForWriting(path, times.sqlite), path, times);
  const say = (message: ThreadMessage<WriteAnswers>) => port.postMessage(message);

  /** @returns the request, unless its callers no longer wait. */
  const inTime = (request: Request | undefined): Request | undefined => {
    if (request === undefined || now() < request.deadline) return request;
    say({ kind: 'failed', ticket: request.ticket, reason: 'other writes took too long' });
    return undefined;
  };

  /** Carries requests out together; each alone if something in one of them is refused. */
  const carryOut = (next: () => Request | undefined): void => {
    const group: Request[] = [];
    try {
      const answers = writer.commit(next, group);
      group.forEach(({ ticket }, position) => {
        say({ kind: 'done', ticket, answer: answers[position] as WriteAnswers });
      });
    } catch (error) {
      const { message: reason, errcode = 0 } = error as Error & { errcode?: number };
      const isRefused = errcode % 256 === SQLITE_CONSTRAINT;
      if (isRefused && group.length > 1) {
        for (const request of group) {
          const alone = [request];
          carryOut(() => inTime(alone.shift()));
        }
        return;
      }
      const fault = isRefused ? 'refused' : 'failure';
      for (const { ticket } of group) say({ kind: 'failed', ticket, reason, fault });
    }
  };

  type Message = Request | Ticketed<EmptyLog> | 'close';
  port.on('message', (first: Message) => {
    let message: Message | undefined = first;
    /** The next request whose callers still wait; later messages stay in the queue until they are needed. */
    const next = (): Request | undefined => {
      for (;;) {
        message ??= receiveMessageOnPort(port)?.message as Message | undefined;
        if (message === undefined || message === 'close' || message.kind === 'emptyLog') return undefined;
        const request = inTime(message);
        message = undefined;
        if (request !== undefined) return request;
      }
    };
    carryOut(next);
    if (message === 'close') {
      writer.close();
      port.close();
    } else if (message !== undefined) {
      const { ticket } = message;
      try {
        say({ kind: 'done', ticket, answer: [writer.emptyLog()] });
      } catch (error) {
        say({ kind: 'failed', ticket, reason: (error as Error).message, fault: 'failure' }); // the disk is full
      }
    }
  });
  say({ kind: 'ready' });
}

class Writer {
  readonly #db: DatabaseSync;
  readonly #store: OpenStore;
  readonly #times: Times;
  readonly #begin;
  readonly #newIds;
  readonly #inserts;
  /** That of the open transaction. */
  #insert;
  readonly #update;
  readonly #remove;
  readonly #find;
  readonly #findKey;
  readonly #keepKey;
  readonly #readTime;
  readonly #beginTime;
  readonly #passTime;
  readonly #dropKeys;
  /** The clock for the age of keys, and since when it has been seen; see KEY_CLOCK. */
  #keyTime = { time: -1, since: 0 };
  #mayHaveExpired = true;
  readonly #commit;

  constructor(db: DatabaseSync, path: string, times: Times) {
    this.#db = db;
    this.#times = times;
    this.#store = new OpenStore(path);
    this.#begin = db.prepare('begin immediate');
    this.#newIds = new NewIds(db);
    const insert = (id: NewId) =>
      db.prepare(`insert into books (id, title, author, year) values (${id}, ?, ?, ?)`);
    this.#inserts = { null: insert('null'), 'new_id()': insert('new_id()') };
    this.#insert = this.#inserts.null;
    this.#update = db.prepare(`
      update books set title = coalesce(?, title), author = coalesce(?, author), year = coalesce(?, year)
      where id = ?
      returning id, title, author, year`);
    this.#remove = db.prepare('delete from books where id = ?');
    this.#find = db.prepare('select id, title, author, year from books where id = ?');
    this.#findKey = db.prepare('select fingerprint, ids from book_requests where key = ?');
    this.#keepKey = db.prepare(
      'insert into book_requests (key, fingerprint, ids, made_at) values (?, ?, ?, ?)',
    );
    this.#readTime = db.prepare(`select made_at as time from book_requests where key = '${KEY_CLOCK}'`);
    this.#beginTime = db.prepare(`
      insert into book_requests (key, fingerprint, ids, made_at)
      select '${KEY_CLOCK}', '', '[]', coalesce(max(made_at), unixepoch() * 1000) from book_requests
      returning made_at as time`);
    this.#passTime = db.prepare(
      `update book_requests set made_at = made_at + ${times.keys.step} where key = '${KEY_CLOCK}' returning made_at as time`,
    );
    this.#dropKeys = db.prepare(`
      delete from book_requests
      where key in (select key from book_requests where made_at <= ? order by made_at limit ${EXPIRED_KEYS})`);
    this.#commit = db.prepare('commit');
  }

  /**
   * Carries out requests in one transaction, as many as there are and time allows.
   * @param group gets the requests that were started; when this throws, none of them has taken effect.
   * @returns their answers, in their order.
   */
  commit(next: () => Request | undefined, group: Request[]): WriteAnswers[] {
    const first = next();
    if (first === undefined) return [];
    group.push(first);
    retryWhileBusy(() => this.#begin.run(), first.deadline, this.#times.sqlite);
    try {
      this.#insert = this.#inserts[this.#newIds.begin()];
      const end = now() + this.#times.sqlite.group;
      const answers = [this.#execute(first)];
      while (group.length < GROUP_SIZE && now() < end) {
        const request = next();
        if (request === undefined) break;
        group.push(request);
        answers.push(this.#execute(request));
      }
      this.#store.assertInPlace();
      this.#commit.run();
      return answers;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback'); // SQLite has already rolled back if the disk is full
      throw error;
    }
  }

  emptyLog(): number {
    return emptyLog(this.#db, this.#times.sqlite);
  }

  close(): void {
    this.#db.close();
  }

  #execute(request: Request): WriteAnswers {
    switch (request.kind) {
      case 'insert':
        return request.items.map(({ title, author, year }) => this.#insertOne(title, author, year));
      case 'insertGroups':
        return request.items.map((group) => this.#insertGroup(group));
      case 'update':
        return untilHeavy(request.items, (update) => this.#change(update));
      case 'remove':
        return request.items.map((id) => this.#removeOne(id));
      case 'changeIf':
        return untilHeavy(request.items, (change) => this.#changeIf(change));
    }
  }

  #insertOne(title: string, author: string, year: number): number {
    const { changes, lastInsertRowid } = this.#insert.run(title, author, year);
    if (changes !== 1) throw new Skipped(); // the last id is another book's
    return Number(lastInsertRowid);
  }

  #insertGroup({ books, once }: BookGroup): GroupOutcome {
    if (once !== undefined) {
      const known = this.#findKey.get(once.key);
      if (known !== undefined) {
        if (known.fingerprint !== once.fingerprint) return 'conflict';
        return { ids: JSON.parse(String(known.ids)), isReplay: true };
      }
    }
    const rows: [string, string, number][] = JSON.parse(books);
    const ids = rows.map((row) => this.#insertOne(...row));
    if (once !== undefined) {
      const time = this.#timeOfKeys();
      this.#keepKey.run(once.key, once.fingerprint, JSON.stringify(ids), time);
      if (this.#mayHaveExpired) {
        const expired = this.#dropKeys.run(time - ageOfExpired(this.#times.keys));
        this.#mayHaveExpired = Number(expired.changes) === EXPIRED_KEYS;
      }
    }
    return { ids, isReplay: false };
  }

  #timeOfKeys(): number {
    let { time } = (this.#readTime.get() ?? this.#beginTime.get()) as { time: number };
    const isUnchanged = time === this.#keyTime.time;
    if (isUnchanged && now() - this.#keyTime.since < this.#times.keys.step) return time;
    if (isUnchanged) ({ time } = this.#passTime.get() as { time: number });
    this.#keyTime = { time, since: now() };
    this.#mayHaveExpired = true;
    return time;
  }

  #change({ id, changes: { title, author, year } }: BookUpdate): Book | undefined {
    const changed = this.#update.get(title ?? null, author ?? null, year ?? null, id);
    if (changed === undefined && this.#find.get(id) !== undefined) throw new Skipped();
    return bookOf(changed);
  }

  #removeOne(id: number): boolean {
    const isRemoved = this.#remove.run(id).changes === 1;
    if (!isRemoved && this.#find.get(id) !== undefined) throw new Skipped();
    return isRemoved;
  }

  #changeIf({ id, condition, changes }: ConditionalChange): ConditionalOutcome {
    const book = bookOf(this.#find.get(id));
    if (book === undefined) return undefined;
    if (!meets(book, condition)) return 'unmet';
    if (changes !== undefined) return this.#change({ id, changes });
    this.#removeOne(id);
    return book;
  }
}

/** A row as a plain object, which other threads can get. */
function bookOf(row: Record<string, unknown> | undefined): Book | undefined {
  return row === undefined ? undefined : ({ ...row } as unknown as Book);
}

if (parentPort !== null) serve(parentPort, workerData as ThreadData);
