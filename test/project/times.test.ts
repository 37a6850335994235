// The times of the product: those that the contract and the documents promise, spelled out, and the sums that its promises
// rest on. Those in the table of rule 22 are generated: documentation.test.ts compares them with the contract. Other tests start
// services with other times. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TIMES } from '../../src/times.ts';

const { auth, books, keys, sqlite, postgres, standby, service, workers, log } = TIMES;

/** Milliseconds: of the answer to a request (rule 23), and of a start and an end of the process (rule 27). */
const ANSWER = 5000;
const PROCESS = 10_000;

describe('the times that documents promise', () => {
  for (const [promise, time, milliseconds] of [
    ['T4: a token lasts 15 minutes', auth.tokenLifetime, 900_000],
    ['all that wait to be one take 0.5 s together', books.shortSearches, 500],
    ['F11: a search waits 1 s for the index, on SQLite', sqlite.catchUp, 1000],
    ['F11: a search waits 1 s for the index, on PostgreSQL', postgres.catchUp, 1000],
    ['F6: counting takes 2 s, on SQLite', sqlite.count, 2000],
    ['F6: counting takes 2 s, on PostgreSQL', postgres.statement.counts, 2000],
    ['F13: suggestions are looked for during 250 ms', books.suggestions, 250],
    ['I4: a key is valid for 24 hours', keys.lifetime, 86_400_000],
    ['rule 27: an open connection has half a second for a last request', service.lastRequest, 500],
    ['rule 28: a worker that could not be replaced is retried after a second', workers.retryPause, 1000],
    ['rule 29: failed logins are counted for 15 minutes', auth.failureWindow, 900_000],
    ['rule 29: one delayed answer a second', auth.failurePace, 1000],
    ['docs/monitoring.md: an answer is slow after a second', log.slow, 1000],
    ['docs/monitoring.md: one line about slow requests a second', log.slowLinesApart, 1000],
    ['docs/maintenance.md: a write on SQLite waits 3 s', sqlite.write, 3000],
    ['docs/maintenance.md: indexing keeps a write waiting for 5 ms', sqlite.step, 5],
    ['docs/postgresql.md: a standby has half a second', standby.snapshot, 500],
    ['docs/engines.md: connecting takes 1.5 s', postgres.connect, 1500],
  ] as const) {
    test(promise, () => assert.equal(time, milliseconds));
  }
});

/** Sums of times, each of which must be shorter than the next one. END: requests are answered, the store is closed, the log is written. */
const SUMS = `
  rule 22: each time limit is shorter than the next one | http.headers < http.wholeRequest < http.reader
  rule 22: load balancers close idle connections first | 60_000 < http.keepAlive
  rule 23: every call gets its answer | books.queue < books.deadline < ANSWER
  rule 23: a list waits for others, and then for its first books | lists.wait < lists.firstChunk < ANSWER
  rule 23: a list gets its lock or its error in time | postgres.listLock < postgres.query < lists.firstChunk
  rule 23: a list that its standby does not answer | standby.snapshot + standby.firstChunk < lists.firstChunk
  rule 23: SQLite starts no write whose callers give up | sqlite.write < books.deadline
  rule 23: a search on SQLite ends before its caller gives up | sqlite.search < books.deadline
  rule 23: PostgreSQL can be connected to twice | 2 * postgres.connect < books.deadline
  rule 23: a lost host is given up before the store is back for 2 s | postgres.connect < 2000
  rule 23: another host is found in time | postgres.watchPause + 1.5 * postgres.searchPause + postgres.connect + postgres.preference < ANSWER
  rule 23: PostgreSQL ends any statement before it counts as silent | Math.max(...Object.values(postgres.statement)) + postgres.notice < postgres.query < books.deadline
  rule 27: a start on SQLite waits for others twice | 2 * sqlite.busy < PROCESS
  rule 27: a start on PostgreSQL finds a host, connects to it and asks it | 2 * postgres.connectAtStart + postgres.describe < PROCESS
  rule 27: the process and its workers end | END < workers.lastResort < commands.lastResort < PROCESS
  rule 31: a process says whether its store answers | service.answer < ANSWER
  rule 31: the operations listener says that the store is silent | admin.ready < commands.ready < ANSWER`;

describe('the sums of times', () => {
  const known = { ...TIMES, ANSWER, PROCESS, END: service.grace + service.storeGrace + log.farewell };
  for (const row of SUMS.trim().split('\n')) {
    const [promise = '', sums = ''] = row.split('|').map((cell) => cell.trim());
    test(`${promise}: ${sums}`, () => {
      const times: number[] = new Function('known', `with (known) return [${sums.replaceAll('<', ',')}]`)(
        known,
      );
      for (const [index, time] of times.entries()) assert.ok(time > (times[index - 1] ?? 0), String(times));
    });
  }
});
