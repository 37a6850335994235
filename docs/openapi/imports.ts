// Owns: what the OpenAPI document says of imports (rules M1 to M6): the parameters, the report, and an example of it.

import { FIELD_NAMES } from '../../src/books/book.ts';
import type { ImportKnown } from '../../src/import/known.ts';
import { OPTION_NAMES, type OptionName } from '../../src/import/options.ts';
import { emptyReport } from '../../src/import/summary.ts';
import { exactly, type Schema, schemaRef } from './schema.ts';

/** Of each option: what it is, and its schema. */
const OPTIONS: Readonly<Record<OptionName, readonly [description: string, schema: Schema]>> = {
  'on-duplicate': [
    'what becomes of rows that equal a book or an earlier row: they are left out, or stored again',
    { type: 'string', enum: ['skip', 'add'] },
  ],
  'on-conflict': [
    'what becomes of rows with the id of a book with other values, without its present tag: they are refused, change that book, or get another id',
    { type: 'string', enum: ['refuse', 'change', 'add'] },
  ],
  doubtful: [
    'what becomes of rows without a title or with an unlikely year: they are stored, or left out',
    { type: 'string', enum: ['add', 'skip'] },
  ],
  ids: [
    'whether the ids of the file count: a row changes the book with its id. Without it: if the columns are those of an export',
    { type: 'string', enum: ['keep', 'new'] },
  ],
  header: ['whether the first row of CSV names the columns', { type: 'string', enum: ['yes', 'no'] }],
  format: [
    'the format, if it is not to be found out',
    { type: 'string', enum: ['csv', 'json', 'jsonl', 'xlsx'] },
  ],
  sheet: ['the sheet of a workbook, if several have books', { type: 'string', examples: ['Books'] }],
  title: ['the column of the title; empty for none', { type: 'string', examples: ['Werk'] }],
  author: ['the column of the author; empty for none', { type: 'string', examples: ['Von'] }],
  year: ['the column of the year; empty for none', { type: 'string', examples: ['Druck'] }],
  encoding: ['the encoding, if it is not to be found out', { type: 'string', examples: ['windows-1252'] }],
  delimiter: ['what separates the fields of CSV; `\\t` is a tab', { type: 'string', examples: [';'] }],
  'from-line': [
    'the first line of CSV that is not left out',
    { type: 'integer', minimum: 1, maximum: 999_999_999, examples: [3] },
  ],
};

const CORRECTIONS = {
  name: 'corrections',
  in: 'query',
  description: 'A JSON object with texts in place of wrong ones, by the `line` of their rows.',
  content: {
    'application/json': {
      schema: { type: 'object', additionalProperties: { type: 'string' } },
      examples: { corrections: { value: { 3: '1901' } } },
    },
  },
};

/** Of `POST /import`, without the name of the file those of `POST /import/<number>`. */
export const CONTINUE_PARAMETERS: readonly object[] = [
  {
    name: 'dry-run',
    in: 'query',
    description: 'Check the file, and store nothing. Without a value it is `true`.',
    schema: { type: 'string', enum: ['', 'true', 'false'], examples: ['true'] },
  },
  ...OPTION_NAMES.map((name) => {
    const [description, schema] = OPTIONS[name];
    return {
      name,
      in: 'query',
      description: `${description}.`.replace(/^./, (letter) => letter.toUpperCase()),
      schema,
    };
  }),
  CORRECTIONS,
];
export const IMPORT_PARAMETERS: readonly object[] = [
  {
    name: 'name',
    in: 'query',
    description: 'The name of the file, for people.',
    schema: { type: 'string', examples: ['books.csv'] },
  },
  ...CONTINUE_PARAMETERS,
];

/** Files of one book, in each format. */
export const FILES: Readonly<Record<string, string>> = {
  csv: 'title,author,year\nDon Quijote,Miguel de Cervantes,1605\n',
  array: '[{"title": "Don Quijote", "author": "Miguel de Cervantes", "year": 1605}]',
  lines: '{"title": "Don Quijote", "author": "Miguel de Cervantes", "year": 1605}\n',
};

const COUNT: Schema = { type: 'integer', minimum: 0 };
const TEXT: Schema = { type: 'string' };
const TEXT_OR_NULL: Schema = { type: ['string', 'null'] };
const TEXTS: Schema = { type: 'array', items: TEXT };
const ROWS_OF_TEXTS: Schema = { type: 'array', items: TEXTS };
const LINE: Schema = { type: 'integer', minimum: 1, description: 'From 1; of a JSON array, the element.' };

const said = (schema: Schema, description: string): Schema => ({ ...schema, description });
const orNull = (schema: Schema): Schema => ({ oneOf: [schema, { type: 'null' }] });

const FAULT = exactly({
  code: {
    ...TEXT,
    enum: ['no-title', 'not-text', 'not-utf8', 'option', 'unreadable', 'stopped', 'store'],
  },
  message: TEXT,
});

const IN_SHORT = {
  import: {
    type: 'integer',
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Its number: `{"event": 40}` takes it back.',
    examples: [40],
  },
  state: {
    type: 'string',
    description: 'One that is `stopped` is completed by the same request again.',
    enum: ['open', 'checked', 'stopped', 'stored', 'undone'],
  },
  books: said(COUNT, 'How many are stored so far.'),
  name: said(TEXT_OR_NULL, 'The name of the file.'),
  dryRun: { type: 'boolean' },
  phase: { type: 'string', enum: ['waiting', 'reading', 'comparing', 'storing', 'done'] },
  read: said(COUNT, 'Bytes that were read.'),
  size: said(COUNT, 'Bytes of the file.'),
  figures: said(
    exactly({
      ...{ rows: said(COUNT, 'The sum of the next six, once all are compared.'), new: COUNT },
      here: said(COUNT, 'Rows that equal a book.'),
      repeated: said(COUNT, 'Rows that equal an earlier row.'),
      doubtful: said(COUNT, 'New rows without a title or with an unlikely year.'),
      changed: said(COUNT, 'Rows that change a book.'),
      refused: COUNT,
      changedSince: said(
        { type: ['integer', 'null'], minimum: 0 },
        'Of the refused rows, those whose books have been changed or removed since; `null` if `HISTORY` is off.',
      ),
      conflicts: said(COUNT, 'Of the refused rows, those that `on-conflict` is about.'),
      absent: said(
        { type: ['integer', 'null'], minimum: 0 },
        'Books that are not in the file, and stay; `null` if its ids do not count.',
      ),
      short: said(COUNT, 'Rows that end before a column in use.'),
      newYears: said(COUNT, 'Dates of New Year in another time zone.'),
      lacking: said(
        exactly(Object.fromEntries(FIELD_NAMES.map((name) => [name, COUNT]))),
        'How many new books lack a field.',
      ),
    }),
    'How many rows there are of each kind.',
  ),
  fault: said(
    orNull({
      ...FAULT,
      properties: {
        ...(FAULT.properties as object),
        names: said(TEXTS, 'Without a column for the title: those that there are.'),
        first: said(ROWS_OF_TEXTS, 'The first rows, then.'),
        line: said({ type: 'integer' }, 'Of the names, if they may be a record.'),
      },
    }),
    'Why the file was not read to its end, or the import stopped.',
  ),
} as const;

const ROW = {
  line: LINE,
  title: TEXT,
  author: TEXT,
  year: { type: 'integer' },
  doubt: said(TEXT_OR_NULL, 'A code, such as `no-title`.'),
} as const;

/** Of the components. */
export const IMPORT_SCHEMAS: Readonly<Record<string, Schema>> = {
  Import: exactly({
    ...IN_SHORT,
    options: {
      type: 'object',
      description: 'As they were sent, or found in a check.',
      properties: Object.fromEntries(OPTION_NAMES.map((name) => [name, TEXT])),
      additionalProperties: false,
    },
    file: said(
      orNull(schemaRef('ImportFile')),
      'How it was understood; `null` if no books can be found in it.',
    ),
    rows: said(
      exactly({
        ...Object.fromEntries(['new', 'here', 'doubtful'].map((kind) => [kind, schemaRef('ImportRows')])),
        changed: schemaRef('ChangedRows'),
      }),
      'Some rows of each kind. Those that are repeated are among `here`.',
    ),
    refused: { type: 'array', maxItems: 1000, items: schemaRef('RefusedRow') },
    rejects: said(
      orNull(exactly({ name: TEXT, before: TEXT, between: TEXT, after: TEXT })),
      'A file of refused rows: its name, and what stands before, between and after the `record` of each.',
    ),
  }),
  ImportInShort: exactly(IN_SHORT),
  ImportFile: exactly({
    format: { type: 'string', enum: ['csv', 'json', 'jsonl', 'xlsx'] },
    encoding: TEXT,
    delimiter: TEXT_OR_NULL,
    sheet: said(TEXT_OR_NULL, 'The sheet of a workbook that is read.'),
    sheets: said(TEXTS, 'The sheets of a workbook, without hidden ones.'),
    header: { type: 'boolean' },
    ids: { type: 'string', enum: ['keep', 'new'] },
    above: said(TEXT, 'The beginning of the text above the header, which is left out.'),
    names: said(TEXTS, 'Of all columns.'),
    first: said(ROWS_OF_TEXTS, 'The beginnings of the first rows.'),
    columns: exactly(Object.fromEntries(FIELD_NAMES.map((name) => [name, TEXT_OR_NULL]))),
    otherYears: said(TEXTS, 'Columns that are read for the year where that one is empty.'),
  }),
  ImportRows: { type: 'array', maxItems: 100, items: exactly(ROW) },
  ChangedRows: {
    type: 'array',
    maxItems: 100,
    items: exactly({
      ...ROW,
      id: { type: 'integer', minimum: 1 },
      before: {
        type: 'object',
        description: 'What the book has now, in the fields that change.',
        properties: { title: TEXT, author: TEXT, year: { type: 'integer' } },
        additionalProperties: false,
      },
    }),
  },
  RefusedRow: exactly({
    line: LINE,
    title: TEXT_OR_NULL,
    column: said(TEXT_OR_NULL, 'The column of the wrong value; `null` if the whole record is wrong.'),
    text: said(TEXT_OR_NULL, 'What a correction replaces; `null` if it is too long.'),
    reason: exactly({
      code: said(TEXT, 'Such as `year-unclear`.'),
      values: { type: 'array', items: { anyOf: [TEXT, { type: 'number' }] } },
    }),
    proposal: said(TEXT_OR_NULL, 'A text in its place.'),
    record: said(TEXT, 'The record, as a file of refused rows has it.'),
  }),
};

const EMPTY = emptyReport('books.csv', true, {}, 86);

/** A file of two rows of which one is refused, after a check. */
const CHECKED: ImportKnown = {
  number: 40,
  state: 'checked',
  books: 0,
  report: {
    ...EMPTY,
    phase: 'done',
    read: 86,
    file: {
      ...{ format: 'csv', encoding: 'utf-8', delimiter: ',', sheet: null, sheets: [] },
      ...{ header: true, ids: 'new', above: '' },
      names: ['title', 'author', 'year'],
      first: [
        ['Don Quijote', 'Miguel de Cervantes', '1605'],
        ['Kim', 'Rudyard Kipling', '1901-1902'],
      ],
      ...{ columns: { title: 'title', author: 'author', year: 'year' }, otherYears: [] },
    },
    figures: { ...EMPTY.figures, rows: 2, new: 1, refused: 1 },
    rows: {
      new: [{ line: 2, title: 'Don Quijote', author: 'Miguel de Cervantes', year: 1605, doubt: null }],
      ...{ here: [], doubtful: [], changed: [] },
    },
    refused: [
      {
        ...{ line: 3, title: 'Kim', column: 'year', text: '1901-1902', proposal: '1901' },
        reason: { code: 'year-unclear', values: [] },
        record: 'Kim,Rudyard Kipling,1901-1902,"year: cannot be read as a year"',
      },
    ],
    rejects: {
      name: 'books.rejects.csv',
      ...{ before: 'title,author,year,refused\n', between: '\n', after: '\n' },
    },
  },
};

/** The same file, checked, stored, and on its way; and one in which there are no books. */
export const IMPORTS = {
  checked: CHECKED,
  stored: { ...CHECKED, state: 'stored', books: 1, report: { ...CHECKED.report, dryRun: false } },
  open: { ...CHECKED, state: 'open', report: { ...EMPTY, dryRun: false } },
  invalid: {
    ...CHECKED,
    report: {
      ...{ ...EMPTY, phase: 'done' },
      fault: {
        ...{ code: 'no-title', message: 'There is no column for the title.' },
        ...{ line: 1, names: ['Werk', 'Von'], first: [['Kim', 'Rudyard Kipling']] },
      },
    },
  },
} as const satisfies Readonly<Record<string, ImportKnown>>;
