// Owns: the benchmark of the librarians' page, as a command: how much it loads, how fast it shows books, how smoothly it
// scrolls, and what it keeps in memory, in a real browser, on both stores. It starts everything itself, and prints each
// figure beside its goal.
// Does not: fail when a goal is missed: times depend on the machine and on what else runs there.

import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import type { BookFields } from '../src/books/book.ts';
import { startBrowser } from '../test/support/browser.ts';
import { unusedPort } from '../test/support/ports.ts';
import { COMMAND } from '../test/support/repository.ts';
import { writeBooksFile } from './books-file.ts';
import { Catalogue } from './catalogue.ts';
import { untilIndexed } from './find.ts';
import {
  type Figure,
  figureOf,
  framesOf,
  type Measurement,
  report,
  rounded,
  STORES,
} from './page-figures.ts';
import { runToEnd, startService } from './processes.ts';
import { progress } from './report.ts';
import { openPostgresTransfers, openSqliteTransfers, type TransferStore } from './transfer-stores.ts';

const HELP = `Usage: npm run bench:page -- [options]

  --store <names>   SQLite, PostgreSQL, or both (SQLite,PostgreSQL)
  --books <n,...>   books of the catalogues (10000,1000000)
  --rounds <n>      times that the page is opened, and each search is typed (5)
  --turns <n>       turns of the wheel before memory is measured, an hour's worth (4000)
  --help            print this

It needs Chromium: apt-get install chromium-headless-shell, or CHROMIUM=<path>.
`;

const WATCH = fileURLToPath(new URL('./page-watch.js', import.meta.url));

/** Milliseconds from one key to the next, as of somebody who types well. */
const TYPING = 150;

// Of an hour's worth of scrolling: pixels of a turn of the wheel; turns from one jump to a place far away to the next;
// and from one search to the next.
const TURN = 360;
const TURNS_TO_JUMP = 20;
const TURNS_TO_SEARCH = 100;

/** Turns of the wheel, and steps of the dragged scroll bar, while frames are timed. */
const TIMED_TURNS = 400;
const TIMED_STEPS = 300;

/** Every so many books, one has no year, and every so many, one no author. */
const YEARLESS = 500;
const AUTHORLESS = 3000;

const { values: options } = parseArgs({
  options: {
    store: { type: 'string', default: STORES.join(',') },
    books: { type: 'string', default: '10000,1000000' },
    rounds: { type: 'string', default: '5' },
    turns: { type: 'string', default: '4000' },
    help: { type: 'boolean', default: false },
  },
});

async function bench(): Promise<void> {
  const stores = STORES.filter((name) => options.store.toLowerCase().split(',').includes(name.toLowerCase()));
  const sizes = options.books.split(',').map(Number);
  const folder = await mkdtemp(join(tmpdir(), 'book-catalogue-bench-'));
  const measurements: Measurement[] = [];
  const before = loadavg()[0];
  const browser = await startBrowser([], ['--hide-scrollbars']);
  try {
    for (const name of stores) {
      const store = name === 'SQLite' ? openSqliteTransfers(folder) : await openPostgresTransfers();
      try {
        for (const books of sizes) measurements.push(await measureStore(browser, store, books, folder));
      } finally {
        await store.remove();
      }
    }
    progress('');
    console.log(
      `Chromium ${browser.version()}; ${availableParallelism()} cores, whose load was ${before?.toFixed(1)} before; medians of ${options.rounds} rounds, and the slowest in brackets\n`,
    );
    report(measurements);
  } finally {
    await browser.close();
    await rm(folder, { recursive: true });
  }
}

async function measureStore(
  browser: Browser,
  store: TransferStore,
  books: number,
  folder: string,
): Promise<Measurement> {
  const say = (work: string) => progress(`${store.name}, ${books} books: ${work}`);
  say('the store');
  const catalogue = new Catalogue(books);
  const file = join(folder, 'books.csv');
  await writeBooksFile(file, withGaps(catalogue.books()));
  const url = await store.makeEmpty(`page_${books}`);
  await runToEnd([...COMMAND, 'import', file], { DB_URL: url });
  const pagePort = await unusedPort();
  const service = await startService(url, { PAGE_PORT: `${pagePort}` }, false);
  try {
    await untilIndexed(service);
    const bench = new PageBench(browser, `http://127.0.0.1:${pagePort}/`, catalogue, say);
    return { store: store.name, books, figures: await bench.measure() };
  } finally {
    await service.stop();
  }
}

/** Books of which some lack a year or an author, so that the page offers to show these. */
function* withGaps(books: Iterable<BookFields>): Generator<BookFields> {
  let number = 0;
  for (const book of books) {
    number += 1;
    yield {
      title: book.title,
      author: number % AUTHORLESS === 0 ? '' : book.author,
      year: number % YEARLESS === 0 ? 0 : book.year,
    };
  }
}

class PageBench {
  readonly #browser: Browser;
  readonly #url: string;
  readonly #catalogue: Catalogue;
  readonly #say: (work: string) => void;
  readonly #rounds = Number(options.rounds);

  constructor(browser: Browser, url: string, catalogue: Catalogue, say: (work: string) => void) {
    this.#browser = browser;
    this.#url = url;
    this.#catalogue = catalogue;
    this.#say = say;
  }

  async measure(): Promise<readonly Figure[]> {
    const opened: Opened[] = [];
    for (let round = 1; round <= this.#rounds; round += 1) {
      this.#say(`opening the page, round ${round} of ${this.#rounds}`);
      for (const { context } of opened.slice(-1)) await context.close();
      opened.push(await this.#open());
    }
    const { context, page, session, files, atFirst } = opened.at(-1) as Opened;
    const memoryAtFirst = await memoryOf(session);
    const searches = await this.#search(page);
    await this.#edit(page);
    const untilEdited = await shiftOf(page);
    const frames = await this.#scroll(page);
    const jumps = await this.#jump(page);
    await this.#scrollForAnHour(page);
    const memory = await memoryOf(session);
    const inAll = await shiftOf(page);
    await this.#openDialogs(page);
    await context.close();
    return [
      { name: 'files of the page, kB', value: atFirst.bytes / 1000, goal: 60 },
      { name: 'requests for them', value: atFirst.requests },
      { name: 'with those of the import, kB', value: bytesOf(files) / 1000 },
      { name: 'requests for them', value: files.size },
      figureOf(
        'first contentful paint, s',
        opened.map(({ firstPaint }) => firstPaint),
      ),
      figureOf(
        'first rows after the login is pressed, s',
        opened.map(({ firstRows }) => firstRows),
        0.3,
      ),
      ...searches,
      ...frames,
      ...jumps,
      { name: 'JavaScript heap at first, MB', value: memoryAtFirst.heap / 1e6 },
      { name: 'after an hour of scrolling, MB', value: memory.heap / 1e6, goal: 10 },
      { name: 'DOM nodes at first', value: memoryAtFirst.nodes },
      { name: 'after an hour of scrolling', value: memory.nodes },
      { name: 'layout shift up to the first edit', value: untilEdited, goal: 0 },
      { name: 'while scrolling', value: inAll - untilEdited },
    ];
  }

  /** Opens the page in a browser that has nothing of it, and logs in. */
  async #open(): Promise<Opened> {
    const context = await this.#browser.newContext({
      locale: 'en-GB',
      viewport: { width: 1280, height: 800 },
    });
    await context.addInitScript({ path: WATCH });
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    const files = watchFiles(context);
    await page.goto(this.#url, { waitUntil: 'networkidle' });
    const atFirst = { requests: files.size, bytes: bytesOf(files) };
    const firstPaint = await page.evaluate(
      "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000",
    );
    await page.getByRole('textbox', { name: 'Name' }).fill('bench');
    await page.getByLabel('Password').fill('bench');
    const shown = page.evaluate('watch.shownAfterInput("")');
    await page.getByRole('button', { name: 'Log in' }).click();
    const firstRows = Number(await shown) / 1000;
    return { context, page, session, files, atFirst, firstPaint: Number(firstPaint), firstRows };
  }

  async #search(page: Page): Promise<Figure[]> {
    const kinds = [
      ['a word that chooses', this.#catalogue.wordIn(10)],
      ['`the`', 'the'],
      ['two words', 'harry potter'],
    ] as const;
    const field = page.getByRole('textbox', { name: 'Search titles and authors' });
    const figures: Figure[] = [];
    for (const [kind, words] of kinds) {
      const times: number[] = [];
      for (let round = 1; round <= this.#rounds; round += 1) {
        this.#say(`searching for ${kind}, round ${round} of ${this.#rounds}`);
        await field.focus();
        const shown = page.evaluate(`watch.shownAfterInput(${JSON.stringify(words)})`);
        await field.pressSequentially(words, { delay: TYPING });
        times.push(Number(await shown) / 1000);
        const all = page.evaluate('watch.shownAfterInput("")');
        await field.press('Escape');
        await all;
      }
      figures.push(figureOf(`search for ${kind} after the last key, s`, times, 0.3));
    }
    return figures;
  }

  /** Changes the author of the first book, for what it may shift. */
  async #edit(page: Page): Promise<void> {
    this.#say('editing');
    for (const key of ['ArrowDown', 'ArrowRight', 'Enter']) await page.keyboard.press(key);
    await page.getByRole('textbox', { name: 'Author of' }).fill('Aaron');
    await page.keyboard.press('Enter');
    await page.getByText('Saved', { exact: true }).waitFor({ state: 'attached' });
  }

  async #scroll(page: Page): Promise<Figure[]> {
    const { x, y, width, height } = await listBox(page);
    await page.mouse.move(x + width / 3, y + height / 2);
    this.#say('scrolling by the wheel');
    const wheel = await timeFrames(page, async () => {
      for (let turn = 0; turn < TIMED_TURNS; turn += 1) await page.mouse.wheel(0, TURN);
    });
    this.#say('dragging the scroll bar');
    const bar = x + width - 5; // pixels
    await page.evaluate('watch.jump("", 0)');
    const drag = await timeFrames(page, async () => {
      await page.mouse.move(bar, y + 25);
      await page.mouse.down();
      await page.mouse.move(bar, y + height - 25, { steps: TIMED_STEPS });
      await page.mouse.up();
    });
    if (Number(await page.evaluate('watch.place()')) < 0.9) throw new Error('the scroll bar did not move');
    return [...framesOf('wheel', wheel), ...framesOf('dragging', drag)];
  }

  async #jump(page: Page): Promise<Figure[]> {
    const figures: Figure[] = [];
    for (const share of [0.25, 0.5, 0.75]) {
      const times: number[] = [];
      for (let round = 1; round <= this.#rounds; round += 1) {
        this.#say(`jumping to ${share * 100} %, round ${round} of ${this.#rounds}`);
        await page.evaluate(`watch.jump("", ${round / 100})`);
        // Another place near by each time, since the page keeps what it has read.
        times.push(Number(await page.evaluate(`watch.jump("", ${share + round / 50})`)) / 1000);
      }
      figures.push(figureOf(`jump to ${share * 100} %, s`, times));
    }
    return figures;
  }

  async #scrollForAnHour(page: Page): Promise<void> {
    const { x, y, width, height } = await listBox(page);
    const field = page.getByRole('textbox', { name: 'Search titles and authors' });
    const titles = this.#catalogue.books().map(({ title }) => title);
    const turns = Number(options.turns);
    for (let turn = 0; turn < turns; turn += 1) {
      if (turn % 100 === 0) this.#say(`an hour of scrolling, ${Math.round((turn / turns) * 100)} %`);
      await page.mouse.move(x + width / 3, y + height / 2);
      await page.mouse.wheel(0, TURN);
      if (turn % TURNS_TO_JUMP === 0) await page.evaluate(`watch.jump("", ${Math.random()})`);
      if (turn % TURNS_TO_SEARCH !== 0) continue;
      const [words = ''] = titles.next().value?.split(' ') ?? [];
      const shown = page.evaluate(`watch.shownAfterInput(${JSON.stringify(words)})`);
      await field.fill(words);
      await shown;
      const all = page.evaluate('watch.shownAfterInput("")');
      await field.press('Escape');
      await all;
    }
  }

  /** Loads what the page loads only when it is wanted. */
  async #openDialogs(page: Page): Promise<void> {
    this.#say('the dialogs');
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    const file = { name: 'books.csv', mimeType: 'text/csv', buffer: Buffer.from('title\nEmma\n') };
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByRole('heading', { name: 'books.csv' }).waitFor();
  }
}

interface Opened {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly session: CDPSession;
  /** Bytes over the wire so far, by URL. */
  readonly files: ReadonlyMap<string, number>;
  /** The files loaded before the login. */
  readonly atFirst: { readonly requests: number; readonly bytes: number };
  /** Seconds since the navigation. */
  readonly firstPaint: number;
  /** Seconds since the login was pressed. */
  readonly firstRows: number;
}

/** Records the files of the page that a context loads. @returns their bytes over the wire, with headers, by URL. */
function watchFiles(context: BrowserContext): ReadonlyMap<string, number> {
  const files = new Map<string, number>();
  context.on('requestfinished', async (request) => {
    const url = request.url();
    const isOfApi = ['fetch', 'xhr'].includes(request.resourceType());
    if (isOfApi || url.startsWith('data:') || files.has(url)) return;
    files.set(url, 0);
    const { responseHeadersSize } = await request.sizes();
    // Their bodies come from the headers: the browser does not say how long the program of a worker is.
    const headers = await (await request.response())?.allHeaders();
    files.set(url, responseHeadersSize + Number(headers?.['content-length']));
  });
  return files;
}

function bytesOf(files: ReadonlyMap<string, number>): number {
  return files.values().reduce((sum, bytes) => sum + bytes, 0);
}

/** What the page keeps when everything that it does not need is gone. */
async function memoryOf(session: CDPSession): Promise<{ heap: number; nodes: number }> {
  await session.send('Performance.enable');
  await session.send('HeapProfiler.collectGarbage');
  const { metrics } = await session.send('Performance.getMetrics');
  const metric = (name: string) => metrics.find((one) => one.name === name)?.value ?? Number.NaN;
  return { heap: metric('JSHeapUsedSize'), nodes: metric('Nodes') };
}

/** How far things have moved in the page; says what moved the furthest. */
async function shiftOf(page: Page): Promise<number> {
  const { shift, largest } = (await page.evaluate('watch.shift()')) as {
    shift: number;
    largest: { value: number; of: string };
  };
  if (shift > 0) console.error(`\nThe largest shift so far is ${rounded(largest.value)}, of ${largest.of}.`);
  return shift;
}

async function listBox(page: Page) {
  const box = await page.getByRole('grid').boundingBox();
  if (box === null) throw new Error('the page has no list');
  const head = 40; // pixels, about
  return { x: box.x, y: box.y + head, width: box.width, height: box.height - head };
}

/** Milliseconds of each frame while something is done. */
async function timeFrames(page: Page, work: () => Promise<void>): Promise<readonly number[]> {
  await page.evaluate('watch.startFrames()');
  await work();
  return (await page.evaluate('watch.stopFrames()')) as readonly number[];
}

if (options.help) process.stdout.write(HELP);
else await bench();
