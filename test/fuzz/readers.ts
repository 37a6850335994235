// Owns: the list of all readers that are fuzzed.

import { arrayOfBooks, bookInBody, login } from './bodies.ts';
import { delimitedFile, delimitedText, fileOfJson, year } from './files.ts';
import { conditions, foreignToken, pathsAndHosts, signedToken } from './headers.ts';
import { addressOfPage, list } from './page.ts';
import { query, words } from './queries.ts';
import type { Reader } from './reader.ts';
import { settings } from './settings.ts';

/** By the name of its file in `corpus/`. */
export const READERS: Readonly<Record<string, Reader>> = {
  'body-of-a-book': bookInBody,
  'body-of-an-array': arrayOfBooks,
  'body-of-a-login': login,
  query,
  words,
  'foreign-token': foreignToken,
  'signed-token': signedToken,
  conditions,
  'paths-and-hosts': pathsAndHosts,
  'delimited-text': delimitedText,
  'delimited-file': delimitedFile,
  'file-of-json': fileOfJson,
  year,
  'address-of-the-page': addressOfPage,
  list,
  settings,
};
