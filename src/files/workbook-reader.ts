// Owns: the parts of a workbook (.xlsx: ECMA-376, Office Open XML): its sheets, and what their cells refer to.

import { posix } from 'node:path';
import { OperatorError } from '../operator-error.ts';
import type { Archive } from './archive.ts';
import {
  EPOCH,
  EPOCH_OF_1904,
  isOn,
  RowReader,
  Runs,
  SharedTexts,
  type Surroundings,
} from './sheet-reader.ts';
import { attributeOf, Damage, type XmlHandlers, XmlReader } from './xml.ts';

const SHEETS = 1000;

/** The numbers of formats that are built in and show a date. */
const DATES = new Set([14, 15, 16, 17, 22, 27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58]);

/** What is no part of a date in a format: texts, escaped signs, colours and languages, room. */
const AROUND_DATES = /"[^"]*"|\\.|\[[^\]]*\]|_.|\*./g;

export interface Sheet {
  readonly name: string;
  readonly isHidden: boolean;
  readonly path: string;
}

export class Workbook {
  readonly sheets: readonly Sheet[];
  readonly #archive: Archive;
  readonly #around: Surroundings;

  private constructor(archive: Archive, sheets: readonly Sheet[], around: Surroundings) {
    this.#archive = archive;
    this.sheets = sheets;
    this.#around = around;
  }

  /** @returns undefined if the archive is no workbook. @throws OperatorError when it cannot be read. */
  static async open(archive: Archive): Promise<Workbook | undefined> {
    const path = (await relationsOf(archive, '')).find(({ type }) => type === 'officeDocument')?.target;
    if (path === undefined || !path.endsWith('.xml')) return undefined;
    const relations = await relationsOf(archive, path);
    const parts = new Map(relations.map(({ id, type, target }) => [id, type === 'worksheet' ? target : '']));
    const sheets: Sheet[] = [];
    let epoch = EPOCH;
    await readPart(archive, path, {
      open(name, attributes) {
        const read = (attribute: string) => attributeOf(attributes, attribute);
        if (name === 'workbookPr' && isOn(read('date1904'))) epoch = EPOCH_OF_1904;
        const part = name === 'sheet' && parts.get(read('id'));
        // It may be a chart. Two sheets of one part would cost twice what the file has.
        if (!part || sheets.some((other) => other.path === part)) return;
        const isHidden = (read('state') ?? 'visible') !== 'visible';
        sheets.push({ name: read('name') ?? '', isHidden, path: part });
        if (sheets.length > SHEETS) throw new Damage(`it has more than ${SHEETS} sheets`);
      },
    });
    if (sheets.length === 0) return undefined;
    const targetOf = (kind: string) => relations.find(({ type }) => type === kind)?.target ?? '';
    const dates = await datesOf(archive, targetOf('styles'));
    const shared = await sharedOf(archive, targetOf('sharedStrings'));
    return new Workbook(archive, sheets, { shared, dates, epoch });
  }

  /** Bytes of a sheet. */
  sizeOf({ path }: Sheet): number {
    return this.#archive.sizeOf(path);
  }

  /**
   * The rows of a sheet as lines of CSV, also empty ones, so that a line is a row, unless a text in it has several.
   * @param onRead is called with the bytes of the sheet that were read.
   * @throws OperatorError when it is damaged, after the rows before the damage.
   */
  async *rows(
    { path }: Sheet,
    onRead: (bytes: number) => void = () => {},
  ): AsyncGenerator<Uint8Array, void, void> {
    const rows = new RowReader(this.#around);
    const xml = new XmlReader(rows);
    for await (const bytes of this.#archive.read(path)) {
      const fault = faultOf(() => xml.write(bytes), path);
      onRead(bytes.length);
      const text = rows.take();
      if (text !== '') yield Buffer.from(text);
      if (fault !== undefined) throw fault;
    }
    const fault = faultOf(() => xml.end(), path);
    if (fault !== undefined) throw fault;
  }
}

interface Relation {
  readonly id: string | undefined;
  readonly type: string;
  readonly target: string;
}

/** What a part of the package refers to. @param path of the part; '' for the package. */
async function relationsOf(archive: Archive, path: string): Promise<readonly Relation[]> {
  const { dir, base } = posix.parse(path);
  const relations: Relation[] = [];
  await readPart(archive, posix.join(dir, '_rels', `${base}.rels`), {
    open(name, { Id, Type = '', Target = '' }) {
      if (name !== 'Relationship') return;
      const target = posix.resolve('/', dir, Target).slice(1);
      relations.push({ id: Id, type: posix.basename(Type), target });
    },
  });
  return relations;
}

/** Whether each style of a cell shows a date. */
async function datesOf(archive: Archive, path: string): Promise<readonly boolean[]> {
  const own = new Map<number, string>();
  const styles: number[] = [];
  let isOfCells = false;
  await readPart(archive, path, {
    open(name, { numFmtId, formatCode = '' }) {
      if (name === 'cellXfs') isOfCells = true;
      if (name === 'numFmt') own.set(Number(numFmtId), formatCode);
      if (name === 'xf' && isOfCells) styles.push(Number(numFmtId ?? 0));
    },
    close(name) {
      if (name === 'cellXfs') isOfCells = false;
    },
  });
  return styles.map((format) => {
    const code = own.get(format)?.replaceAll(AROUND_DATES, '');
    return code === undefined ? DATES.has(format) : /[dy]/i.test(code);
  });
}

/** The texts that the cells share. @throws OperatorError when they are too long. */
async function sharedOf(archive: Archive, path: string): Promise<SharedTexts> {
  const texts = new SharedTexts(archive.sizeOf(path));
  let runs = new Runs();
  await readPart(archive, path, {
    open(name) {
      if (name === 'si') runs = new Runs();
      runs.open(name);
    },
    text: (text) => runs.text(text),
    close(name) {
      runs.close(name);
      if (name === 'si') texts.add(runs.all);
    },
  });
  return texts;
}

async function readPart(archive: Archive, path: string, handlers: Partial<XmlHandlers>): Promise<void> {
  const xml = new XmlReader({ open() {}, text() {}, close() {}, ...handlers });
  let isEmpty = true;
  for await (const bytes of archive.read(path)) {
    isEmpty = false;
    assertRead(() => xml.write(bytes), path);
  }
  if (!isEmpty) assertRead(() => xml.end(), path);
}

/** @throws OperatorError when a part cannot be read. */
function assertRead(read: () => void, path: string): void {
  const fault = faultOf(read, path);
  if (fault !== undefined) throw fault;
}

function faultOf(read: () => void, path: string): OperatorError | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    return new OperatorError(`The workbook is damaged (${path}: ${error.message}): save it again.`);
  }
}
