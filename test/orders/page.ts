// Owns: every order of a librarian's edits, deletions, additions and undoing on the page, with a service that answers late, loses
// answers or is away, beside another person who changes the same books and takes back any change, until the page is left.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { Book, BookChanges, BookState, Undone } from '../../client/src/book-catalogue.ts';
import { BookChanged, CatalogueError } from '../../client/src/errors.ts';
import { pathTo } from '../support/repository.ts';
import { settled } from '../support/virtual-time.ts';
import { dispatch, element, forgetPage, provideDocument } from './document.ts';
import { Order } from './order.ts';

provideDocument();
// By their paths, and so without their types, which need those of a browser.
const [{ Log }, { Edits }, { Undo }, { Shelf }] = await Promise.all(
  ['catalogue/log.ts', 'changes/edits.ts', 'changes/undo.ts', 'list/shelf.ts'].map(
    (file) => import(pathTo(`page/${file}`)),
  ),
);

interface RowState {
  readonly kind: string;
  readonly action?: string;
  readonly book?: Book;
}

const FIRST: readonly Book[] = [1, 2].map((id) => ({ id, title: `title ${id}`, author: 'author', year: id }));

const event = fc.record({
  kind: fc.constantFrom(
    ...[
      'edit',
      'edit',
      'edit',
      'delete',
      'add',
      'settle',
      'undo',
      'undo',
      'redo',
      'search',
      'retry',
      'reload',
    ],
    ...['keep mine', 'keep theirs', 'their write', 'their removal', 'their undo'],
  ),
  id: fc.constantFrom(1, 1, 2),
  field: fc.constantFrom('title' as const, 'author' as const),
});

/** What the person does beside the events, at any moment. */
const departure = fc.constantFrom('stays', 'stays', 'leaves, unless asked to stay', 'leaves');

const NEVER = new Promise<never>(() => {});

const FATES = ['is answered', 'is answered', 'answer is lost', 'is not sent'];
const fates = fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 6 });

/** Calls after which the service is well, since an undo is repeated until it is answered. */
const MOST_FATES = 60;

interface Logged {
  readonly id: number;
  readonly before: Book | null;
  readonly after: Book | null;
  readonly isMine: boolean;
}

/** The service, as the client of the page sees it. */
class Catalogue {
  readonly books = new Map(FIRST.map((book) => [book.id, book]));
  /** The changes, whose numbers are their places. */
  readonly log: Logged[] = [];
  readonly #undone = new Map<string, Undone>();
  readonly #order: Order;
  readonly #fates: readonly string[];
  #calls = 0;
  isHere = false;
  /** The page is gone: it gets no answer, and requests that have not arrived yet are lost. */
  hasLeft = false;

  constructor(order: Order, fates: readonly string[]) {
    this.#order = order;
    this.#fates = fates;
  }

  /** Whether a book has, or had, this value. */
  knows(id: number, field: 'title' | 'author', text: string): boolean {
    return this.log.some(({ id: changed, after }) => changed === id && after?.[field] === text);
  }

  write(id: number, after: Book | null, isMine: boolean): void {
    this.log.push({ id, before: this.books.get(id) ?? null, after, isMine });
    if (after === null) this.books.delete(id);
    else this.books.set(id, after);
  }

  add(title: string): Book {
    const id = Math.max(...FIRST.map((book) => book.id), ...this.log.map((one) => one.id)) + 1;
    const book = { id, title, author: '', year: 0 };
    this.write(id, book, true);
    return book;
  }

  /** As rule H5 says: what others have changed since stays, unless it is back to what the change had led to. */
  takeBack(change: number, isMine: boolean): Undone {
    const { id, before, after } = this.log[change] as Logged;
    const now = this.books.get(id) ?? null;
    if (isDeepStrictEqual(now, before)) return { change: null, undone: 0, left: [] };
    if (!isDeepStrictEqual(now, after))
      return { change: null, undone: 0, left: [{ id, reason: 'changed later' }] };
    this.write(id, before, isMine);
    return { change: this.log.length - 1, undone: 1, left: [] };
  }

  update(id: number, changes: BookChanges, { expected }: { expected: Book }): Promise<Book> {
    return this.#call(`update ${id}`, () => {
      const before = this.#find(id, expected);
      if (before === undefined) throw new CatalogueError('Book not found', { status: 404 });
      this.write(id, { ...before, ...changes }, true);
      return { ...before, ...changes };
    });
  }

  /** As the client does: a book that is gone is no fault. */
  remove(id: number, { expected }: { expected?: Book }): Promise<boolean> {
    this.#order.expect(expected !== undefined, 'a book is deleted, whatever it is by now');
    return this.#call(`remove ${id}`, () => {
      const isThere = this.#find(id, expected) !== undefined;
      if (isThere) this.write(id, null, true);
      return isThere;
    });
  }

  find(id: number): Promise<Book | undefined> {
    return this.#call(`find ${id}`, () => this.books.get(id));
  }

  async *history(id: number): AsyncGenerator<BookState> {
    yield* await this.#call(`history ${id}`, () => {
      const states = this.log.map((one, change) => ({ ...one, change, book: one.after, at: '' }));
      const first = FIRST.filter((book) => book.id === id).map((book) => ({
        id,
        change: null,
        book,
        at: '',
      }));
      return [...first, ...states].filter((one) => one.id === id).toReversed();
    });
  }

  async *changes() {
    yield { changes: [], cursor: '' };
  }

  undo({ change }: { change: number }, { idempotencyKey }: { idempotencyKey: string }): Promise<Undone> {
    const { id, after } = this.log[change] as Logged;
    const isMine = this.log.some((one) => one.isMine && one.id === id && isDeepStrictEqual(one.after, after));
    this.#order.expect(isMine || after === null, 'the page takes back what another person has changed');
    return this.#call(`undo ${change}`, () => {
      const undone = this.#undone.get(idempotencyKey) ?? this.takeBack(change, true);
      this.#undone.set(idempotencyKey, undone);
      return undone;
    });
  }

  page() {
    return this.#call('search', () =>
      pageOf([...this.books.values()].toSorted((one, two) => one.id - two.id)),
    );
  }

  #find(id: number, expected: Book | undefined): Book | undefined {
    const book = this.books.get(id);
    if (book !== undefined && expected !== undefined && !isDeepStrictEqual({ ...book }, { ...expected }))
      throw new BookChanged('Precondition failed', book, {});
    return book;
  }

  async #call<Answer>(name: string, act: () => Answer): Promise<Answer> {
    const isWell = this.isHere || this.#calls > MOST_FATES;
    const fate = isWell ? 'is answered' : this.#fates[this.#calls % this.#fates.length];
    this.#calls += 1;
    const outcome = await this.#order.later(`${name} ${fate}`, () => {
      if (this.hasLeft) return NEVER;
      if (fate === 'is not sent') throw new CatalogueError('fetch failed', {});
      return act();
    });
    return await this.#order.later(`${name} is answered`, () => {
      if (this.hasLeft) return NEVER;
      if (fate === 'answer is lost') throw new CatalogueError('fetch failed', { mayBeDone: true });
      return outcome;
    });
  }
}

function pageOf(books: readonly Book[]) {
  return { books: [...books], total: books.length, unindexed: 0, next: undefined };
}

/** The page, as main.ts connects its parts. */
class Page {
  readonly #time: { readonly now: number };
  readonly undo;
  readonly edits;
  readonly shelf;
  #latest = new AbortController();

  constructor(catalogue: Catalogue, time: { readonly now: number }, books: readonly Book[]) {
    const session = {
      id: 'one person',
      reach: { isHere: true, trouble: '' },
      call: (work: (one: Catalogue) => Promise<unknown>) => work(catalogue),
      during: (work: () => Promise<unknown>) => work(),
    };
    this.#time = time;
    this.shelf = new Shelf(session);
    this.shelf.show({ search: {}, index: 0, page: pageOf(books) });
    const log = new Log(session);
    this.undo = new Undo(session, log);
    this.edits = new Edits(session, this.shelf, log, this.undo);
    this.undo.settled = () => this.edits.settled();
    this.undo.onTakenBack = (id: number, book?: Book, changes?: BookChanges) => {
      this.edits.takenBack(id, book, changes);
      if (book !== undefined && this.shelf.placeOf(id) === undefined) void this.search();
    };
  }

  get books(): readonly Book[] {
    return Array.from({ length: this.shelf.total }, (_, at) => this.shelf.at(at)).filter(Boolean);
  }

  row(id: number): Book | undefined {
    return this.books.find((book) => book.id === id);
  }

  stateOf(book: Book): RowState | undefined {
    return this.edits.stateOf(book);
  }

  async search(): Promise<void> {
    this.#latest.abort();
    this.#latest = new AbortController();
    const { signal } = this.#latest;
    const began = this.#time.now;
    const found = await this.shelf.find({}, 0, signal).catch(() => undefined);
    if (found === undefined || signal.aborted) return;
    this.shelf.show(found);
    this.edits.forgetGone(began);
  }
}

export const page = fc.asyncProperty(
  fc.scheduler(),
  fc.array(event, { minLength: 1, maxLength: 14 }),
  departure,
  fates,
  (scheduler, events, departure, fates) =>
    Order.run(scheduler, async (order) => {
      const { time } = order;
      const catalogue = new Catalogue(order, fates);
      forgetPage();
      let page = new Page(catalogue, time, FIRST);
      const touched = new Set<number>();
      /** The latest text that the person has typed into each field of a book, unless it was given up. */
      const typed = new Map<string, readonly [id: number, field: 'title' | 'author', text: string]>();

      const deleted = new Set<number>();
      let isAskedToStay = false;
      const leave = async () => {
        isAskedToStay = !dispatch('beforeunload');
        if (isAskedToStay && departure !== 'leaves') return;
        await settled();
        catalogue.hasLeft = true;
      };

      const act = ({ kind, id, field }: (typeof events)[number], text: string) => {
        const { undo, edits } = page;
        const stored = catalogue.books.get(id);
        if (kind.startsWith('their')) {
          touched.add(id);
          if (kind === 'their write' && stored !== undefined)
            catalogue.write(id, { ...stored, title: text }, false);
          if (kind === 'their removal' && stored !== undefined) catalogue.write(id, null, false);
          const latest = catalogue.log.findLastIndex((one) => one.id === id);
          if (kind === 'their undo' && latest >= 0) catalogue.takeBack(latest, false);
        }
        if (catalogue.hasLeft) return;
        if (kind === 'search') void page.search();
        if (kind === 'undo') void undo.run();
        if (kind === 'redo') void undo.redo();
        if (kind === 'retry') edits.retry();
        if (kind === 'keep mine') element('#conflict').close('mine');
        if (kind === 'keep theirs' && element('#conflict').open) {
          element('#conflict').close('theirs');
          typed.clear();
        }
        if (kind === 'add') {
          const book = catalogue.add(text);
          undo.push({ id: book.id, name: text, before: null, after: book });
        }
        if (kind === 'reload' && dispatch('beforeunload')) {
          forgetPage(true);
          page = new Page(catalogue, time, [...catalogue.books.values()]);
        }
        const book = page.row(id);
        const state = book && page.stateOf(book);
        if (book === undefined) return;
        if (kind === 'settle' && state?.action !== undefined) edits.settle(book);
        if (state?.kind === 'deleted' || state?.kind === 'changed') return;
        if (kind === 'edit') {
          edits.change({ ...book, ...state?.book }, { [field]: text });
          typed.set(`${id} ${field}`, [id, field, text]);
        }
        if (kind === 'delete') {
          edits.delete({ ...book, ...state?.book });
          deleted.add(id);
        }
      };
      element('#conflict').close('');
      for (const [number, event] of events.entries())
        void order.later(`${event.kind} ${event.id}`, () => act(event, `text ${number}`));
      if (departure !== 'stays') void order.later(departure, leave);
      await order.untilQuiet();

      const nothingIsLost = () => {
        for (const [id, field, text] of typed.values()) {
          // Its row offers to bring the book back, with the text.
          const wasGone = catalogue.log.some((one) => one.id === id && one.after === null && !one.isMine);
          assert.ok(wasGone || catalogue.knows(id, field, text), `“${text}” is lost`);
        }
      };
      if (catalogue.hasLeft) {
        if (!isAskedToStay) nothingIsLost();
        return;
      }

      // The service is here again, and the person settles everything.
      catalogue.isHere = true;
      for (let round = 0; round < 5; round += 1) {
        page.edits.retry();
        for (const book of page.books) if (page.stateOf(book)?.kind === 'changed') page.edits.settle(book);
        element('#conflict').close('mine');
        await order.untilQuiet();
      }
      nothingIsLost();

      for (const book of page.books) {
        const state = page.stateOf(book);
        if (state?.kind === 'deleted') {
          if (touched.has(book.id)) continue;
          assert.ok(!catalogue.books.has(book.id), 'a book is shown as deleted, and is there');
        } else {
          assert.equal(state, undefined);
          if (!touched.has(book.id)) assert.deepEqual(catalogue.books.get(book.id), book);
        }
      }
      const press = async (key: 'run' | 'redo') => {
        for (let time = 0; time < 2 * events.length; time += 1) {
          void page.undo[key]();
          await order.untilQuiet();
        }
      };
      const isTakenBack = events.some(({ kind }) => ['undo', 'redo', 'settle'].includes(kind));
      for (const id of deleted)
        if (!touched.has(id) && !isTakenBack) assert.ok(!catalogue.books.has(id), 'a book is not deleted');
      if (touched.size === 0) {
        const contents = () => [...catalogue.books.values()].toSorted((one, two) => one.id - two.id);
        await press('redo'); // what was taken back
        const last = contents();
        await press('run');
        assert.deepEqual(contents(), FIRST, 'undo does not lead back to the beginning');
        await press('redo');
        assert.deepEqual(contents(), last, 'redo does not lead to the end');
      } else {
        for (const book of page.books) {
          if (page.stateOf(book)?.action !== 'Undo' || catalogue.books.has(book.id)) continue;
          page.edits.settle(book);
          await order.untilQuiet();
          assert.ok(catalogue.books.has(book.id), 'a book is not back');
        }
      }
    }),
);
