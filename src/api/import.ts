// Owns: what a client does with files: importing one, and reading how far an import is.

import { basename } from 'node:path';
import { readBookId } from '../books/book.ts';
import type { Answer } from '../http/answer.ts';
import type { ImportRequest, NotImported } from '../import/imports.ts';
import type { ImportKnown } from '../import/known.ts';
import { OPTION_NAMES, type OptionName, readOptions, WrongOption } from '../import/options.ts';
import { isUnreadable } from '../import/summary.ts';
import { isJsonObject, parseJson } from '../json/parse.ts';
import { printable } from '../terminal/printable.ts';
import { INVALID, idempotencyKeyOf } from './conditions.ts';
import * as answers from './envelope.ts';
import { type AppParts, type Exchange, isCompressed } from './exchange.ts';
import { readParameters } from './query.ts';

/** Imports of a list. */
const LISTED = 20;

/** Characters of a file's name. */
const LONGEST_NAME = 200;

/** Its body is a file. */
export async function importFile(exchange: Exchange, { imports, config }: AppParts): Promise<Answer> {
  const key = idempotencyKeyOf(exchange);
  if (key === INVALID) return answers.INVALID_KEY;
  const query = readImport(exchange.path.query);
  if ('invalid' in query) return answers.invalidParameter(query.invalid);
  if (config.requireIfMatch && changesUnseen(query)) return answers.PRECONDITION_REQUIRED;
  if (isCompressed(exchange.request)) return answers.BODY_COMPRESSED;
  const { name, ...request } = query;
  const upload = await imports.receive(exchange.request);
  const begun = await imports.begin(upload, name, request, key);
  const answer = answerTo(begun);
  return typeof begun === 'object' && begun.isReplay ? answers.replayOf(answer) : answer;
}

export async function continueImport({ path }: Exchange, { imports, config }: AppParts): Promise<Answer> {
  const query = readImport(path.query);
  if ('invalid' in query) return answers.invalidParameter(query.invalid);
  if (config.requireIfMatch && changesUnseen(query)) return answers.PRECONDITION_REQUIRED;
  const number = numberIn(path.sent);
  if (number === undefined) return answers.IMPORT_NOT_FOUND;
  const known = await imports.find(number);
  if (known?.state === 'stored' || known?.state === 'undone') return answers.importRetrieved(known);
  const { name: _, ...request } = query;
  return answerTo(await imports.continue(number, request));
}

export async function readImportOf({ path }: Exchange, { imports }: AppParts): Promise<Answer> {
  const number = numberIn(path.sent);
  const found = number === undefined ? undefined : await imports.find(number);
  return found === undefined ? answers.IMPORT_NOT_FOUND : answers.importRetrieved(found);
}

export async function listImports(_: Exchange, { imports }: AppParts): Promise<Answer> {
  return answers.importsRetrieved(await imports.newest(LISTED));
}

/** Whether rows without the tag of a book may change it (rule E4). */
function changesUnseen({ options }: ImportRequest): boolean {
  return options['on-conflict'] === 'change';
}

function answerTo(outcome: ImportKnown | NotImported): answers.EnvelopeAnswer {
  if (outcome === 'conflict') return answers.KEY_USED;
  if (outcome === 'unknown') return answers.IMPORT_NOT_FOUND;
  if (outcome === 'gone') return answers.FILE_GONE;
  const { state, report } = outcome;
  if (state === 'open') return answers.importInProgress(outcome);
  if (state === 'undone') return answers.importRetrieved(outcome);
  if (state === 'stored') return answers.booksImported(outcome);
  if (state === 'stopped') return answers.SERVICE_UNAVAILABLE;
  if (isUnreadable(report)) return answers.invalidFile(outcome);
  return answers.fileChecked(outcome);
}

/** They are written like ids. */
function numberIn(path: string): number | undefined {
  return readBookId(path.slice('/import/'.length));
}

/** @returns the name of the first invalid parameter, if there is one. */
function readImport(query: string): (ImportRequest & { name: string | null }) | { readonly invalid: string } {
  const options: Partial<Record<OptionName, string>> = {};
  let [dryRun, name, corrections] = [false, null as string | null, {}];
  const parameters = readParameters(query, (parameter, value) => {
    if (parameter === 'dry-run') {
      dryRun = value !== 'false';
      return ['', 'true', 'false'].includes(value);
    }
    if (parameter === 'name') {
      name = printable(basename(value)).slice(0, LONGEST_NAME);
      return true;
    }
    if (parameter === 'corrections') {
      const sent = parseJson(value);
      corrections = isJsonObject(sent) ? sent : {};
      const areLines = ([line, text]: [string, unknown]) =>
        /^[1-9]\d*$/.test(line) && typeof text === 'string';
      return isJsonObject(sent) && Object.entries(sent).every(areLines);
    }
    const option = OPTION_NAMES.find((one) => one === parameter);
    if (option !== undefined) options[option] = value;
    return option !== undefined;
  });
  if ('invalid' in parameters) return parameters;
  try {
    readOptions(options);
  } catch (error) {
    if (error instanceof WrongOption) return { invalid: error.option };
    throw error;
  }
  return { dryRun, name, corrections, options };
}
