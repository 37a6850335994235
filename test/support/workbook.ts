// Owns: workbooks and archives that a test makes, as other programs write them.

import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';

const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';

/** A ZIP archive of these files. */
export async function archiveOf(files: Readonly<Record<string, string | Buffer>>): Promise<Buffer> {
  const zip = new ZipFile();
  for (const [path, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content as string), path);
  zip.end();
  return buffer(zip.outputStream);
}

/** The contents of a sheet: the elements in its `sheetData`. */
export const sheetOf = (rows: string) =>
  `<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="${MAIN}"><sheetData>${rows}</sheetData></worksheet>`;

/** A row of texts. */
export const rowOf = (...texts: readonly string[]) =>
  `<row>${texts.map((text) => `<c t="inlineStr"><is><t>${text}</t></is></c>`).join('')}</row>`;

/** The parts of a workbook. @param sheets their XML by their names; a name that begins with `-` is that of a hidden one. */
export function partsOf(
  sheets: Readonly<Record<string, string>>,
  { shared = '', styles = '', settings = '' } = {},
): Record<string, string> {
  const names = Object.keys(sheets);
  const listed = names.map((name, at) => {
    const state = name.startsWith('-') ? ' state="hidden"' : '';
    return `<sheet name="${name.replace('-', '')}" sheetId="${at + 1}"${state} r:id="s${at}"/>`;
  });
  const relations = names.map(
    (_, at) => `<Relationship Id="s${at}" Type="${OFFICE}/worksheet" Target="/xl/worksheets/s${at}.xml"/>`,
  );
  const more = Object.entries({ sharedStrings: shared, styles }).map(
    ([type]) => `<Relationship Id="${type}" Type="${OFFICE}/${type}" Target="${type}.xml"/>`,
  );
  return {
    '_rels/.rels': `<Relationships><Relationship Id="a" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
    'xl/workbook.xml': `<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}">${settings}<sheets>${listed.join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships>${relations.join('')}${more.join('')}</Relationships>`,
    ...Object.fromEntries(names.map((name, at) => [`xl/worksheets/s${at}.xml`, sheets[name] as string])),
    ...(shared === '' ? {} : { 'xl/sharedStrings.xml': `<sst>${shared}</sst>` }),
    ...(styles === '' ? {} : { 'xl/styles.xml': `<styleSheet>${styles}</styleSheet>` }),
  };
}

/** A workbook whose only sheet has these rows. */
export function workbookOf(rows: string, more: Parameters<typeof partsOf>[1] = {}): Promise<Buffer> {
  return archiveOf(partsOf({ Books: sheetOf(rows) }, more));
}
