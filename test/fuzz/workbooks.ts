// Owns: what is promised of the rows of a workbook, whatever XML they are.

import { readBookChanges } from '../../src/books/book.ts';
import { read } from '../support/files.ts';
import { archiveOf, partsOf } from '../support/workbook.ts';
import { assertSame, messageFor, type Reader } from './reader.ts';

const SHARED = {
  shared: '<si><t>Title</t></si><si><t>Year</t></si>',
  styles: '<cellXfs><xf numFmtId="14"/></cellXfs>',
};

/** The input is what stands within `sheetData`. */
export const rowsOfAWorkbook: Reader = async ({ content }) => {
  const [start, end] = ['<worksheet><sheetData>', '</sheetData></worksheet>'].map((text) =>
    Buffer.from(text),
  );
  const sheet = Buffer.concat([start as Buffer, content, end as Buffer]);
  const file = await archiveOf({ ...partsOf({ Books: '' }, SHARED), 'xl/worksheets/s0.xml': sheet });
  const outcomeOf = async (size: number) => {
    try {
      const { books, refused, fault } = await read(file, { name: 'books.xlsx' }, [size]);
      return { books, refused, fault };
    } catch (error) {
      return { books: [], refused: [], fault: messageFor(error) };
    }
  };
  const found = await outcomeOf(65_536);
  assertSame(await outcomeOf(7), found, 'the file in pieces');
  for (const { title, author, year, line } of found.books) {
    if (readBookChanges({ title, author, year }) === undefined) throw new Error('no book may be so');
    if (line < 1 || line > 1_048_576) throw new Error(`there is no row ${line}`);
  }
};
