// Owns: how a file was understood, in words.

import type { ImportReport } from '../../client/src/book-catalogue.ts';
import { REFUSED } from '../../src/files/columns.ts';
import { REMARKS } from '../../src/files/reasons.ts';
import { make, warning } from '../elements/dom.ts';
import { FIELDS } from '../elements/text.ts';
import { IMPORT } from '../texts/import.ts';

const ENCODINGS: Readonly<Record<string, string>> = {
  'utf-8': 'UTF-8',
  'utf-16le': 'UTF-16',
  'utf-16be': 'UTF-16',
  'windows-1252': 'Windows-1252',
};

/** `9 rows, separated by semicolons, UTF-8; title from “Werk”, no author, no year`. */
export function describe({ figures, file }: ImportReport): (Node | string)[] {
  if (file === null) return [];
  const { format, delimiter, sheet, encoding, columns } = file;
  const json = format === 'jsonl' ? IMPORT.jsonLines : IMPORT.json;
  const written = delimiter === null ? json : IMPORT.separatedBy(IMPORT.separators[delimiter] ?? delimiter);
  const named = FIELDS.flatMap((field, at) => IMPORT.from(at === 0, field, columns[field]));
  const read =
    sheet === null
      ? [IMPORT.read(figures.rows, written, ENCODINGS[encoding] ?? encoding)]
      : IMPORT.readSheet(figures.rows, sheet);
  return [...read, ...named];
}

/** What stands below the rows. */
export function remarksOn({ figures, file }: ImportReport): string {
  const { repeated, lacking, absent, changedSince } = figures;
  const remarks: string[] = [];
  if (absent !== null && absent > 0 && !file?.names.includes(REFUSED)) remarks.push(IMPORT.absent(absent));
  if (changedSince === null && file?.ids === 'keep') remarks.push(IMPORT.noHistory);
  if (lacking.year > 0) remarks.push(IMPORT.lackYear(lacking.year));
  if (repeated > 0) remarks.push(IMPORT.twice(repeated));
  for (const [name, one, several, rest] of REMARKS)
    if (figures[name] > 0) remarks.push(IMPORT.remark(figures[name], one, several, rest));
  if (file?.above) remarks.push(IMPORT.above(file.above));
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
  if (isAsked) warn(IMPORT.isFirstRowABook);
  if (file === null) warn(IMPORT.whichTitle);
  else if (fault !== null) warn(IMPORT.rowsBefore(fault.message));
  else if (figures.rows === 0) warn(IMPORT.noRows);
  if (options.encoding !== undefined) notice(IMPORT.notUtf8);
  if (options.sheet !== undefined) notice(IMPORT.severalSheets(options.sheet));
  const hasIds = file?.names.some((name) => name.trim().toLowerCase() === 'id');
  if (hasIds && file?.ids === 'new' && figures.new > 0) notice(IMPORT.idsUnused);
  if (file && file.otherYears.length > 0) notice(IMPORT.otherYears(`${file.columns.year}`, file.otherYears));
  return notices;
}
