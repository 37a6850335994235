// Workbooks that LibreOffice reads and writes: real books that go through it are the same, and three years that are corrected there
// change three books.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { booksOf } from '../support/books.ts';
import { command, folderWith } from '../support/importing.ts';
import { pathTo } from '../support/repository.ts';
import { SQLITE, STORES } from '../support/service.ts';
import { executeOn } from '../support/sql.ts';

/** Commas, quotation marks around every text, UTF-8, and cells as they are shown. */
const CSV = 'csv:Text - txt - csv (StarCalc):44,34,76,1,,0,true,true,false';

for (const { name, freshUrl } of STORES)
  test(`the books of the demo, on ${name}, are the same after LibreOffice has opened and saved their workbook`, async () => {
    const [dbUrl, folder] = [await freshUrl(), folderWith({})];
    assert.equal((await command(`import ${pathTo('src/demo/books.csv')}`, dbUrl)).code, 0);
    assert.equal((await command('export books.xlsx', dbUrl, folder)).code, 0);
    const saved = convert(folder, 'books.xlsx', 'xlsx');
    const again = await command(`import ${saved}`, dbUrl, folder);
    assert.match(again.stdout, /^2467 rows read: 0 imported, 2467 already there, 0 refused\.\n/);
    const copy = await SQLITE.freshUrl();
    assert.equal((await command(`import ${convert(folder, 'books.xlsx', CSV)}`, copy, folder)).code, 0);
    assert.deepEqual(await booksOf(copy), await booksOf(dbUrl));
    const table = await SQLITE.freshUrl();
    copyFileSync(pathTo('src/demo/books.csv'), join(folder, 'table.csv'));
    assert.equal((await command(`import ${convert(folder, 'table.csv', 'xlsx')}`, table, folder)).code, 0);
    const inShort = async (url: string) =>
      (await booksOf(url)).map(({ title, author, year }) => `${title}/${author}/${year}`);
    assert.deepEqual(await inShort(table), await inShort(dbUrl));

    const lines = readFileSync(join(folder, 'saved/books.csv'), 'utf8').split('\n');
    const corrected = lines.map((line, at) =>
      at >= 1 && at <= 3 ? line.replace(/,(-?\d+),(?=[^,]*$)/, ',1999,') : line,
    );
    writeFileSync(join(folder, 'corrected.csv'), corrected.join('\n'));
    await executeOn(dbUrl, "update books set author = 'A colleague' where id = 2");
    const { stdout } = await command(`import ${convert(folder, 'corrected.csv', 'xlsx')}`, dbUrl, folder);
    assert.match(stdout, /^2467 rows read: 0 imported, 2 changed, 2464 already there, 1 refused\.\n/);
    const [first, second, third] = await booksOf(dbUrl);
    assert.deepEqual([first?.year, second?.author, third?.year], [1999, 'A colleague', 1999]);
    assert.notEqual(second?.year, 1999);
  });

/** @returns the file that LibreOffice (Debian: apt-get install libreoffice-calc) has written. */
function convert(folder: string, file: string, format: string): string {
  const saved = join(folder, 'saved');
  const profile = `-env:UserInstallation=file://${join(folder, 'profile')}`;
  const input = file.endsWith('.csv') ? ['--infilter=Text - txt - csv (StarCalc):44,34,76,1'] : [];
  const args = [
    profile,
    '--headless',
    ...input,
    '--convert-to',
    format,
    '--outdir',
    saved,
    join(folder, file),
  ];
  execFileSync('soffice', args, { stdio: 'ignore' });
  return join(saved, file.replace(/\.\w+$/, `.${format.slice(0, format.startsWith('csv') ? 3 : 4)}`));
}
