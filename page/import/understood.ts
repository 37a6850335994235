// Owns: how a file was understood, in words.

import type { ImportReport } from '../../client/src/book-catalogue.ts';
import { REMARKS } from '../../src/files/reasons.ts';
import { AS_IT_IS, make, warning } from '../elements/dom.ts';
import { FIELDS } from '../elements/text.ts';
import { counted } from '../texts/english.ts';
import { DELIMITERS } from './layout.ts';

const ENCODINGS: Readonly<Record<string, string>> = {
  'utf-8': 'UTF-8',
  'utf-16le': 'UTF-16',
  'utf-16be': 'UTF-16',
  'windows-1252': 'Windows-1252',
};

/** `9 rows, separated by semicolons, UTF-8; title from “Werk”, no author, no year`. */
export function describe({ figures, file }: ImportReport): (Node | string)[] {
  if (file === null) return [];
  const { format, delimiter, encoding, columns } = file;
  const separated = delimiter === null ? 'JSON' : `separated by ${DELIMITERS[delimiter] ?? delimiter}`;
  const lines = format === 'jsonl' ? ', one book a line' : '';
  const rows = counted(figures.rows, 'row');
  const named = FIELDS.flatMap((field, at) => {
    const between = at === 0 ? '; ' : ', ';
    const column = columns[field];
    if (column === null) return [`${between}no ${field}`];
    return [`${between}${field} from `, make('bdi', AS_IT_IS, `“${column}”`)];
  });
  return [`${rows}, ${separated}${lines}, ${ENCODINGS[encoding] ?? encoding}`, ...named];
}

/** What stands below the rows. */
export function remarksOn({ figures, file }: ImportReport): string {
  const { repeated, lacking } = figures;
  const remarks: string[] = [];
  if (lacking.year > 0) remarks.push(`${counted(lacking.year, 'new book has', 'new books have')} no year.`);
  if (repeated > 0) remarks.push(`${counted(repeated, 'row is', 'rows are')} in this file more than once.`);
  for (const [name, one, several, rest] of REMARKS)
    if (figures[name] > 0) remarks.push(`${counted(figures[name], one, several)} ${rest}`);
  if (file?.above) remarks.push(`Left out above the names of the columns: ${file.above}`);
  return remarks.join(' ');
}

/**
 * What a person should see before anything else.
 * @param isAsked whether a person must say what the first row is.
 */
export function noticesOn({ fault, file, figures, options }: ImportReport, isAsked: boolean): HTMLElement[] {
  const notices: HTMLElement[] = [];
  const notice = (text: string) => notices.push(make('p', { class: 'note' }, text));
  const warn = (text: string) => notices.push(warning(text));
  if (isAsked) warn('Is the first row a book, or does it have the names of the columns?');
  if (file === null) warn('Which column is the title? Choose it above the column.');
  else if (fault !== null) warn(`${fault.message} Only the rows before that can be imported.`);
  else if (figures.rows === 0) warn('The file has no rows.');
  if (options.encoding !== undefined)
    notice(
      'The file is not UTF-8; it was read as Windows-1252. Look whether letters such as é are right. If not, save it as CSV in UTF-8, and choose it again.',
    );
  if (file?.names.includes('id') && figures.new > 0)
    notice(
      'The file has ids, but an import changes no books: each new book gets another id. A book that was corrected in the file is added beside the one that is here.',
    );
  const others = file?.otherYears.map((name) => `“${name}”`).join(' or else ');
  if (others) notice(`Where “${file?.columns.year}” is empty, ${others} is the year.`);
  return notices;
}
