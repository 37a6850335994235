// The client importing files into the real service, also behind a front that loses answers.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { BookCatalogue, type ImportedFile, InvalidFile } from '../../client/src/book-catalogue.ts';
import { allOf, answer, assertRefused, errorOf, PATIENT, played, timed } from '../support/catalogue.ts';
import { passOn, startFront } from '../support/front.ts';
import { manyRows } from '../support/importing.ts';
import { type RunningService, SQLITE, startTestService } from '../support/service.ts';
import { timesWith } from '../support/times.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

async function* pieces(text: string) {
  for (const character of text) yield bytes(character);
}

/** A file of each kind that the client takes. */
const FILES: readonly (readonly [name: string, isOnce: boolean, fileOf: (text: string) => ImportedFile])[] = [
  ['a text', false, (text) => text],
  ['bytes', false, bytes],
  ['a blob', false, (text) => new Blob([text])],
  ['a stream', true, (text) => new Blob([text]).stream()],
  ['pieces', true, pieces],
];

describe('the client', () => {
  let service: RunningService;
  let catalogue: BookCatalogue;

  before(async () => {
    // Each import takes longer than its first answer.
    const times = timesWith({ imports: { answer: 0 } });
    service = await startTestService(await SQLITE.freshUrl(), {}, process.stderr, times);
    catalogue = new BookCatalogue(service.url, PATIENT);
  });

  const titles = async (mark: string) =>
    (await allOf(catalogue)).map(({ title }) => title).filter((title) => title.startsWith(mark));

  for (const [name, isOnce, fileOf] of FILES) {
    test(`M7: stores ${name} once, ${isOnce ? 'in one attempt' : 'however many answers are lost'}`, async (context) => {
      const keys: unknown[] = [];
      let lost = 0;
      const front = await startFront(context, (incoming, outgoing) => {
        const isFile = incoming.url?.startsWith('/import?') === true;
        if (isFile) keys.push(incoming.headers['idempotency-key']);
        lost -= isFile ? 1 : 0;
        passOn(
          service,
          incoming,
          outgoing,
          isFile && lost >= 0 ? () => incoming.socket.destroy() : undefined,
        );
      });
      const behind = new BookCatalogue(front.url, PATIENT);
      const options = { onDuplicate: 'add', name: 'a.csv', wait: true } as const;
      if (isOnce) {
        lost = 1;
        const error = await errorOf(behind.importFile(fileOf(`title\n${name} lost\n`), options));
        assert.deepEqual([error.status, error.mayBeDone, keys.length], [undefined, true, 1]);
      } else lost = 2;
      const report = await behind.importFile(fileOf(`title\n${name} é\n`), options);
      assert.deepEqual([report.state, report.books, report.name], ['stored', 1, 'a.csv']);
      assert.deepEqual(report.options, { 'on-duplicate': 'add' });
      assert.deepEqual(await titles(`${name} é`), [`${name} é`]);
      assert.deepEqual([keys.length, new Set(keys).size], isOnce ? [2, 2] : [3, 1]);
    });
  }

  test('M2 to M6: checks a file, corrects it, stores it by its number, and takes it back', async () => {
    const before = await allOf(catalogue);
    const file = new File(['Werk,year\nEmma,1815\nKim,1901-1902\n'], 'books.csv');
    const options = { dryRun: true, wait: true, author: '' };
    const error = await errorOf(catalogue.importFile(file, options));
    assert.ok(error instanceof InvalidFile);
    assert.deepEqual([error.name, error.message, error.status], ['InvalidFile', 'Invalid file', 400]);
    assert.deepEqual(error.report.fault?.names, ['Werk', 'year']);
    const number = error.report.import;
    const checked = await catalogue.continueImport(number, { dryRun: true, wait: true, title: 'Werk' });
    assert.deepEqual([checked.name, checked.state, checked.figures.refused], ['books.csv', 'checked', 1]);
    const [refused] = checked.refused;
    assert.deepEqual([refused?.line, refused?.text, refused?.proposal], [3, '1901-1902', '1901']);
    assert.deepEqual(await allOf(catalogue), before);
    const done = await catalogue.continueImport(number, { wait: true, corrections: { 3: '1901' } });
    assert.deepEqual([done.state, done.books], ['stored', 2]);
    assert.deepEqual(await catalogue.import(number), done);
    assert.equal((await catalogue.imports())[0]?.import, number);
    await catalogue.undo({ event: number });
    assert.deepEqual(await allOf(catalogue), before);
    await assertRefused(catalogue.import(2 ** 40), 404, 'Import not found');
    await assertRefused(catalogue.importFile('', { fromLine: 0 }), 400, 'Invalid query parameter: from-line');
  });

  test('M2: does not wait for the end of an import unless it is asked to', async () => {
    const { import: number, state } = await catalogue.importFile(manyRows(2000), { title: 'title' });
    assert.ok(['open', 'stored'].includes(state));
    const { state: ended } = await catalogue.importFile(manyRows(10), { wait: true });
    assert.equal(ended, 'stored');
    assert.equal((await catalogue.import(number)).import, number);
  });
});

timed('waits for the end of an import with pauses between its looks, until it is aborted', async (time) => {
  const { catalogue, seen } = played(() => answer(202, { import: 7, state: 'open' }, 'Import in progress'));
  const leaving = new AbortController();
  const call = catalogue.importFile('title\n', { wait: true, signal: leaving.signal });
  void time.after(60_000).then(() => leaving.abort(new Error('enough')));
  await assert.rejects(time.until(call), { message: 'enough' });
  const looks = seen.filter((line) => line === 'GET /import/7').length;
  assert.ok(looks > 25 && looks < 40, `${looks} looks`);
});
