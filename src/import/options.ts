// Owns: the options of an import, which a command and a request give by the same names; and the fingerprint of an import.

import { hash } from 'node:crypto';
import { FIELD_NAMES } from '../books/book.ts';
import { decoderOf } from '../files/decoding.ts';
import type { ReadingOptions } from '../files/format.ts';
import { FORMATS } from '../files/reading.ts';
import { InvalidOption } from '../operator-error.ts';
import type { LoadRules } from '../stores/load.ts';
import { version } from '../version.ts';

/** The options that have one of some values. The first is the default of those whose default is fixed. */
const CHOICES = {
  'on-duplicate': ['skip', 'add'],
  'on-conflict': ['refuse', 'change', 'add'],
  doubtful: ['add', 'skip'],
  ids: ['keep', 'new'],
  header: ['yes', 'no'],
  format: FORMATS.map(({ name }) => name),
} as const;

export const OPTION_NAMES = [
  ...(Object.keys(CHOICES) as (keyof typeof CHOICES)[]),
  ...FIELD_NAMES,
  'sheet',
  'encoding',
  'delimiter',
  'from-line',
] as const;
export type OptionName = (typeof OPTION_NAMES)[number];

/** As they were given. */
export type GivenOptions = { readonly [Name in OptionName]?: string | undefined };

export interface ImportOptions {
  readonly skipsEqual: boolean;
  readonly skipsDoubtful: boolean;
  readonly onConflict: LoadRules['onConflict'];
  readonly reading: Omit<ReadingOptions, 'name'>;
}

export class WrongOption extends InvalidOption {
  readonly option: OptionName;

  constructor(option: OptionName, message: string) {
    super(message);
    this.option = option;
  }
}

/** @throws WrongOption */
export function readOptions(given: GivenOptions): ImportOptions {
  const choice = <Name extends keyof typeof CHOICES>(name: Name) => {
    const value = given[name];
    const words: readonly string[] = CHOICES[name];
    if (value === undefined || words.includes(value))
      return value as (typeof CHOICES)[Name][number] | undefined;
    throw new WrongOption(name, `--${name} must be one of ${words.join(', ')}, not "${value}".`);
  };
  const { 'from-line': line, delimiter, encoding } = given;
  if (line !== undefined && !/^[1-9]\d{0,8}$/.test(line))
    throw new WrongOption('from-line', `--from-line must be the number of a line, not "${line}".`);
  if (delimiter && delimiter !== '\\t' && !/^[^"\r\n]$/.test(delimiter))
    throw new WrongOption(
      'delimiter',
      'The delimiter must be one character up to U+FFFF other than a quote or a line end, or \\t for a tab.',
    );
  if (encoding) assertEncoding(encoding);
  const header = choice('header');
  return {
    skipsEqual: choice('on-duplicate') !== 'add',
    skipsDoubtful: choice('doubtful') === 'skip',
    onConflict: choice('on-conflict') ?? 'refuse',
    reading: {
      format: choice('format'),
      encoding: encoding || undefined,
      delimiter: delimiter === '\\t' ? '\t' : delimiter || undefined,
      // An empty name is that of no column.
      columns: Object.fromEntries(FIELD_NAMES.map((name) => [name, given[name] === '' ? null : given[name]])),
      hasHeader: header === undefined ? undefined : header === 'yes',
      fromLine: line === undefined ? undefined : Number(line),
      sheet: given.sheet || undefined,
      ids: choice('ids'),
    },
  };
}

/** @throws WrongOption */
function assertEncoding(label: string): void {
  try {
    decoderOf(label, false);
  } catch (error) {
    throw new WrongOption('encoding', (error as Error).message);
  }
}

/**
 * Equal for the same file with the same options, read by the same version of the service.
 * @param content a hash of the whole file.
 */
export function fingerprintOf(content: string, given: GivenOptions, ...more: readonly unknown[]): string {
  const options = OPTION_NAMES.map((name) => given[name] ?? null);
  return hash('sha256', JSON.stringify([content, options, more, version]), 'base64url');
}
