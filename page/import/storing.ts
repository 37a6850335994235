// Owns: adding a file's books to the catalogue, and removing them again. Each book is stored once, whatever answers
// get lost: a chunk of books is sent again with the key of its first attempt.
// Does not: give up while the catalogue does not respond. Only a person ends that.

import { type BookCatalogue, BookChanged, CatalogueError } from '../../client/src/book-catalogue.ts';
import { valuesOf } from '../../src/books/book.ts';
import { digestOf } from '../../src/files/alike.ts';
import { randomKey } from '../catalogue/request-key.ts';
import type { Session } from '../catalogue/session.ts';
import { type FileBook, keyOf, type Wanted } from './calls.ts';
import type { ImportFile } from './file.ts';

/**
 * What one request stores. More books are hardly faster. Proxies accept so much text by default, and a slow line takes
 * it within the time limit of a call.
 */
const CHUNK = { books: 2000, text: 200_000 };

/** Books that are compared at a time: a few milliseconds of the page's time. */
const COMPARED = 1000;

/** Requests at once: a browser has six connections to a host, and one is left for searches. */
const LANES = 5;

// Milliseconds
const SECOND = 1000;
const PAUSE = SECOND;
const SOON = 2 * SECOND;

/** Milliseconds that an unknown outcome can be settled: the service keeps keys for 24 hours. */
const SETTLED_WITHIN = 23 * 60 * 60 * SECOND;

/** A book that was added. It is not kept whole: there may be a million. */
interface Added {
  readonly id: number;
  readonly digest: number;
}

interface Chunk {
  readonly books: readonly FileBook[];
  readonly key: string;
  /** When it was sent first; undefined before that. */
  sentAt: number | undefined;
}

/**
 * Carries out a call of the catalogue, and repeats it until the catalogue answers.
 * @throws the reason of the signal; CatalogueError when the catalogue has refused the call.
 */
async function persist<Result>(
  session: Session,
  signal: AbortSignal,
  work: (catalogue: BookCatalogue) => Promise<Result>,
): Promise<Result> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await session.call(work);
    } catch (error) {
      if (signal.aborted || !isAway(error)) throw error;
    }
    await pause(signal);
  }
}

/** Whether an error means that the catalogue is away, behind a login page too, or at least that nothing is known of the outcome. */
function isAway(error: unknown): boolean {
  return (
    error instanceof CatalogueError &&
    (error.status === undefined ||
      [401, 429].includes(error.status) ||
      (error.status < 400 && error.isForeign) ||
      error.status >= 500)
  );
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, PAUSE);
    signal.addEventListener('abort', end);
  });
}

/**
 * Notes in a file which of its rows equal a book of the catalogue.
 * @param onProgress is called with the number of books compared so far.
 * @throws the reason of the signal; CatalogueError
 */
export async function compare(
  session: Session,
  file: ImportFile,
  onProgress: (compared: number) => void,
  signal: AbortSignal,
): Promise<void> {
  await persist(session, signal, async (catalogue) => {
    await file.ask('beginComparison');
    let compared = 0;
    onProgress(compared);
    let keys: string[] = [];
    for await (const book of catalogue.list({ signal })) {
      keys.push(keyOf(book));
      if (keys.length < COMPARED) continue;
      await file.ask('compare', keys); // meanwhile the page does other work
      compared += keys.length;
      keys = [];
      onProgress(compared);
    }
    await file.ask('compare', keys);
  });
}

/** The storing of one file. */
export class Storing {
  readonly #session: Session;
  readonly #file: ImportFile;
  readonly #wanted: Wanted;
  readonly #idOf: (id: number) => number;
  /** Taken from the file, and not stored yet. */
  #chunks: Chunk[] = [];
  #stopping = new AbortController();
  #isStopped = false;
  /** The books that were added and not removed again. */
  readonly added: Added[] = [];
  /** How many of them somebody has changed since: they stay. */
  changed = 0;
  /** Books that are too long for the catalogue. */
  readonly tooLong: FileBook[] = [];
  /** Books added a second, lately; 0 at first. */
  rate = 0;

  /** @param idOf as for the dialog. */
  constructor(session: Session, file: ImportFile, wanted: Wanted, idOf: (id: number) => number) {
    this.#session = session;
    this.#file = file;
    this.#wanted = wanted;
    this.#idOf = idOf;
  }

  /** How many books may have been added or not: the catalogue did not answer before the stop. */
  get unknown(): number {
    return this.#chunks.reduce(
      (sum, { books, sentAt }) => sum + (sentAt === undefined ? 0 : books.length),
      0,
    );
  }

  /** Ends the work after the answer that is on its way, if it arrives soon. */
  stop(): void {
    this.#isStopped = true;
    const controller = this.#stopping;
    if (this.#session.reach === 'here') setTimeout(() => controller.abort(), SOON);
    else controller.abort();
  }

  /**
   * Stores the books, in the order of the file. After an error it can be called again.
   * @throws CatalogueError when the catalogue refuses books.
   */
  async store(): Promise<void> {
    await this.#untilStopped(async (signal) => {
      while (!this.#isStopped) {
        if (this.#chunks.length === 0) {
          const books = await this.#file.ask('next', this.#wanted, CHUNK);
          if (books.length === 0) return;
          this.#chunks.push({ books, key: randomKey(), sentAt: undefined });
        }
        await this.#storeChunk(this.#chunks[0] as Chunk, signal);
      }
    });
  }

  /**
   * Removes the books that were added from the catalogue. After an error or a stop it can be called again.
   * @throws CatalogueError
   */
  async takeOut(): Promise<void> {
    this.#isStopped = false;
    this.#stopping = new AbortController();
    await this.#untilStopped(async (signal) => {
      // The ids of books of which it is not known whether they were added.
      let problem: unknown;
      for (const chunk of this.#chunks.filter(({ sentAt }) => sentAt !== undefined)) {
        await this.#storeChunk(chunk, signal).catch((error) => {
          problem ??= error; // books that are known to be here are removed nevertheless
        });
      }
      const lane = async () => {
        for (;;) {
          const book = this.#isStopped ? undefined : this.added.pop();
          if (book === undefined) return;
          try {
            await this.#takeOutBook(book, signal);
          } catch (error) {
            this.added.push(book);
            throw error;
          }
        }
      };
      const lanes = await Promise.allSettled(Array.from({ length: LANES }, lane));
      for (const lane of lanes) if (lane.status === 'rejected') throw lane.reason;
      if (problem !== undefined) throw problem;
    });
  }

  /** Takes a book out, unless somebody has changed it. */
  async #takeOutBook({ id: first, digest }: Added, signal: AbortSignal): Promise<void> {
    const id = this.#idOf(first);
    const isAsAdded = await persist(this.#session, signal, async (catalogue) => {
      const book = await catalogue.find(id, { signal });
      if (book === undefined) return true; // somebody has deleted it
      if (digestOfBook(book) !== digest) return false;
      try {
        await catalogue.remove(id, { expected: book, signal });
        return true;
      } catch (error) {
        if (error instanceof BookChanged) return false;
        throw error;
      }
    });
    if (!isAsAdded) this.changed += 1;
  }

  async #untilStopped(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #storeChunk(chunk: Chunk, signal: AbortSignal): Promise<void> {
    const { books, key } = chunk;
    let attempts = chunk.sentAt === undefined ? 0 : 1;
    const began = performance.now();
    const options = { idempotencyKey: key, signal };
    try {
      const stored = await persist(this.#session, signal, (catalogue) => {
        chunk.sentAt ??= Date.now();
        if (Date.now() - chunk.sentAt > SETTLED_WITHIN) throw new OutcomeUnknown();
        attempts += 1;
        return catalogue.createAll(books, options);
      });
      for (const book of stored) this.added.push({ id: book.id, digest: digestOfBook(book) });
      this.#chunks.shift();
    } catch (error) {
      // A refusal of the first attempt is known: nothing was stored.
      if (attempts === 1 && error instanceof CatalogueError && !error.mayBeDone && !isAway(error))
        chunk.sentAt = undefined;
      if (!(error instanceof CatalogueError) || error.status !== 413) throw error;
      this.#chunks.shift();
      this.#split(books);
    }
    const rate = books.length / ((performance.now() - began) / SECOND);
    this.rate = this.rate === 0 ? rate : 0.7 * this.rate + 0.3 * rate;
  }

  /** Books that were too many or too long for one request. */
  #split(books: readonly FileBook[]): void {
    if (books.length === 1) {
      this.tooLong.push(...books);
      return;
    }
    const half = Math.ceil(books.length / 2);
    const halves = [books.slice(0, half), books.slice(half)];
    this.#chunks.unshift(...halves.map((part) => ({ books: part, key: randomKey(), sentAt: undefined })));
  }
}

/** Tells a book from its changed self. A page without TLS has no `crypto.subtle`. */
function digestOfBook(book: FileBook): number {
  return digestOf(valuesOf(book).join('\0'));
}

/** The catalogue has been away for so long that it does not know any more whether it has stored the last books. */
export class OutcomeUnknown extends Error {
  constructor() {
    super(
      'The catalogue was away for a day. Import the file again: books that are here already are left out.',
    );
  }
}
