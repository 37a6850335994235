// Owns: the table of limits and timeouts in the contract (rule 22), with their values from the code.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../src/config.ts';
import { TIMES } from '../src/times.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

/** Rows of the table: what is limited, its limit, what happens beyond it. */
export function limitsTable(): string[][] {
  const { bodyLimit, bulkLimit, headerLimit, importLimit } = readConfig({});
  const room = constantsOf('src/http/room.ts');
  const headers = constantsOf('src/http/head.ts')('MOST_HEADERS').toLocaleString('en-US');
  const { http, lists, books: calls, sqlite } = TIMES;
  const onSqlite = constantsOf('src/stores/sqlite/store.ts')('OPEN_LISTS');
  const onPostgres = constantsOf('src/stores/postgres/connections.ts')('LIST_CONNECTIONS');
  const books = constantsOf('src/api/book-array.ts')('MOST_BOOKS').toLocaleString('en-US');
  const values = constantsOf('src/json/parse.ts')('MOST_VALUES').toLocaleString('en-US');
  const login = size(constantsOf('src/auth/credentials.ts')('LOGIN_LIMIT'));
  const files = constantsOf('src/import/upload.ts');
  const walSize = constantsOf('src/stores/sqlite/wal.ts');
  return [
    [
      'one body',
      `${size(bodyLimit)} (\`BODY_LIMIT\`); ${values} commas and opening brackets outside texts`,
      '413',
    ],
    ['that of `POST /books`', `${size(bulkLimit)} (\`BULK_LIMIT\`); ${books} books`, '413'],
    ['that of `POST /import`', `${size(importLimit)} (\`IMPORT_LIMIT\`)`, '413'],
    ['that of `POST /token`', login, '413'],
    ['request line and headers', `${size(headerLimit)} (\`HEADER_LIMIT\`); ${headers} lines`, '431'],
    ['until the headers have arrived', seconds(http.headers), '408'],
    [
      'until the whole request has',
      `${seconds(http.wholeRequest)}; of a file, each ${size(files('LEAST'))}`,
      '408',
    ],
    ['a connection without a first request', seconds(http.headers), 'closed'],
    ['a connection without another request', seconds(http.keepAlive), 'closed'],
    [
      `memory of bodies above ${size(room('TINY'))} in pieces, and of those of \`POST /books\`, four times each, until answered`,
      `${size(room('BODY_BYTES'))}, or one of them`,
      '503',
    ],
    [
      `memory of unread answers above ${size(room('TINY'))}, lists excepted`,
      `${size(room('ANSWER_BYTES'))}, or one of them`,
      '503',
    ],
    [
      'until a client takes the next part of its answer',
      `${seconds(http.reader)}; until half of that memory is free again, ${seconds(http.readerWithoutRoom)}`,
      'it is disconnected',
    ],
    [
      'requests of a connection',
      `1 at a time; ${size(room('WAITING_BYTES'))} wait in a process`,
      'they wait, unread; it is closed',
    ],
    ['files of imports in a process', `${files('MOST_FILES')}; together, the size of one`, '503'],
    ['the log of changes', '`HISTORY` days', 'removed'],
    [
      'open lists in a process',
      `${onSqlite} on SQLite, ${onPostgres} on PostgreSQL; one on a connection`,
      `503 after ${seconds(lists.wait)}; a list breaks off for another one if its reader has read nothing for ${seconds(lists.stall)}`,
    ],
    [
      "SQLite's log of writes while others read",
      size(walSize('LONG_WAL')),
      `new lists and searches wait ${seconds(sqlite.walWait)} for those in progress; beyond ${size(walSize('HUGE_WAL'))}, lists break off once one is open for ${seconds(lists.long)}`,
    ],
    [
      'searches in a process',
      `one of up to ${seconds(calls.shortSearch)} at a time, one longer one beside it; on SQLite each ${seconds(sqlite.search)}`,
      `503 after ${seconds(calls.deadline)} in all, or after ${seconds(calls.queue)} if it still waits`,
    ],
  ];
}

/** @returns the values of the numeric constants of a program, by their names. */
export function constantsOf(path: string): (name: string) => number {
  const code = readFileSync(`${PROJECT}/${path}`, 'utf8');
  return (name) => {
    const [, product] = new RegExp(`^(?:export )?const ${name} = ([\\d_ *]+);`, 'm').exec(code) ?? [];
    if (product === undefined) throw new Error(`${path} has no number ${name}.`);
    return product.split('*').reduce((value, factor) => value * Number(factor.replaceAll('_', '')), 1);
  };
}

export function size(bytes: number): string {
  const power = Math.floor(Math.log2(bytes) / 10);
  return `${bytes / 1024 ** power} ${['B', 'KiB', 'MiB', 'GiB'][power]}`;
}

export function seconds(milliseconds: number): string {
  return `${milliseconds / 1000} s`;
}
