// Owns: mutants of the HTTP server: its limits, its refusals, its order, its description.

import type { Mutant } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const HOSTILE = 'test/api/hostile.test.ts';
const TIMEOUTS = 'test/api/timeouts.test.ts';

export const API_MUTANTS: readonly Mutant[] = [
  {
    name: 'headers must arrive within 10 s',
    file: 'src/api/app.ts',
    from: 'const HEADERS_TIMEOUT = 15_000;',
    to: 'const HEADERS_TIMEOUT = 10_000;',
    test: { file: TIMEOUTS, name: 'without complete headers after 15 s', store: 'SQLite' },
  },
  {
    name: 'a request may take 90 s',
    file: 'src/api/app.ts',
    from: 'const WHOLE_REQUEST_TIMEOUT = 30_000;',
    to: 'const WHOLE_REQUEST_TIMEOUT = 90_000;',
    test: { file: TIMEOUTS, name: 'an incomplete request is 408 after 30 s', store: 'SQLite' },
  },
  {
    name: 'a stalled reader is cut after 30 s',
    file: 'src/http/connection.ts',
    from: 'const READER_TIMEOUT = 60_000;',
    to: 'const READER_TIMEOUT = 30_000;',
    test: { file: TIMEOUTS, name: 'readers that take nothing', store: 'SQLite' },
  },
  {
    name: 'an idle connection is closed after 60 s',
    file: 'src/api/app.ts',
    from: 'const KEEP_ALIVE_TIMEOUT = 72_000;',
    to: 'const KEEP_ALIVE_TIMEOUT = 60_000;',
    test: { file: TIMEOUTS, name: 'without another request is closed after 72 s', store: 'SQLite' },
  },
  {
    name: 'the requests of one connection are handled one after the other',
    file: 'src/http/connection.ts',
    from: 'const MAX_CONCURRENT = 32;',
    to: 'const MAX_CONCURRENT = 1;',
    test: { file: HOSTILE, name: 'handled concurrently', store: 'SQLite' },
  },
  {
    name: 'a 33rd request of one connection is handled concurrently',
    file: 'src/http/connection.ts',
    from: 'this.#begun < MAX_CONCURRENT',
    to: 'this.#begun <= MAX_CONCURRENT',
    test: { file: HOSTILE, name: 'handled concurrently', store: 'SQLite' },
  },
  {
    name: 'a removal is handled concurrently with the reads before it',
    file: 'src/http/connection.ts',
    from: "new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])",
    to: "new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'POST', 'DELETE'])",
    test: { file: HOSTILE, name: 'alone on its connection', store: 'SQLite' },
  },
  {
    name: 'request line and headers may have one byte more',
    file: 'src/http/server.ts',
    from: 'maxHeaderSize: headerLimit,',
    to: 'maxHeaderSize: headerLimit + 1,',
    test: { file: CONTRACT, name: '16 KiB are read', store: 'SQLite' },
  },
  {
    name: 'a request may name two hosts',
    file: 'src/http/server.ts',
    from: 'hasKnownCoding(request) && hasOneHost(request)',
    to: 'hasKnownCoding(request)',
    test: { file: CONTRACT, name: 'a missing or second Host', store: 'SQLite' },
  },
  {
    name: 'a body in an unknown coding is read',
    file: 'src/http/server.ts',
    from: 'isHttp1(request) && hasKnownCoding(request)',
    to: 'isHttp1(request)',
    test: { file: CONTRACT, name: 'the request after them is not carried out', store: 'SQLite' },
  },
  {
    name: 'a refusal overtakes the answers before it',
    file: 'src/http/connection.ts',
    from: 'else if (this.#beforeLatest !== undefined) afterwards(this.#beforeLatest, refuse);',
    to: '',
    test: { file: CONTRACT, name: 'never overtakes', store: 'SQLite' },
  },
  {
    name: 'a client that is still sending does not read its last answer',
    file: 'src/http/connection.ts',
    from: "socket.end();\n    socket.removeAllListeners('data');",
    to: "socket.end(() => socket.destroy());\n    socket.removeAllListeners('data');",
    test: { file: CONTRACT, name: 'sends far more before it reads', store: 'SQLite' },
  },
  {
    name: 'a body may have one byte more than the limit',
    file: 'src/http/body.ts',
    from: 'if (end > limit) {',
    to: 'if (end > limit + 1) {',
    test: { file: CONTRACT, name: 'one byte more is 413', store: 'SQLite' },
  },
  {
    name: 'there is room for 16 MiB of large bodies',
    file: 'src/http/body.ts',
    from: 'const ROOM = 128 * 1024 * 1024;',
    to: 'const ROOM = 16 * 1024 * 1024;',
    test: { file: HOSTILE, name: '128 bodies of 1 MiB', store: 'SQLite' },
  },
  {
    name: 'there is room for one more large body',
    file: 'src/http/body.ts',
    from: 'const ROOM = 128 * 1024 * 1024;',
    to: 'const ROOM = 129 * 1024 * 1024;',
    test: { file: HOSTILE, name: '128 bodies of 1 MiB', store: 'SQLite' },
  },
  {
    name: 'the pieces of a body are kept as they arrive',
    file: 'src/http/body.ts',
    from: '  const onData = (chunk: Buffer) => {',
    to: '  const kept: Buffer[] = [];\n  const onData = (chunk: Buffer) => {\n    kept.push(chunk);',
    test: { file: HOSTILE, name: 'in chunks of a byte', store: 'SQLite' },
  },
  {
    name: 'a request id may have 129 characters',
    file: 'src/api/envelope.ts',
    from: '{1,128}',
    to: '{1,129}',
    test: { file: CONTRACT, name: 'has the id of its request', store: 'SQLite' },
  },
  {
    name: 'calls wait until they are late',
    file: 'src/books/batches.ts',
    from: 'const MAX_QUEUE_TIME = 2000;',
    to: 'const MAX_QUEUE_TIME = 20_000;',
    test: { file: 'test/api/overload.test.ts', name: 'refused at once, on PostgreSQL', store: 'PostgreSQL' },
  },
  {
    name: 'every page may read answers',
    file: 'src/api/cors.ts',
    from: 'named.has(origin)',
    to: 'named.size > 0',
    test: { file: 'test/api/cors.test.ts', name: 'for any other page', store: 'SQLite' },
  },
  {
    name: 'the description has no Retry-After with 429',
    file: 'docs/openapi/responses.ts',
    from: "  429: ['Retry-After'],\n",
    to: '',
    test: {
      file: 'test/project/documentation.test.ts',
      name: 'openapi.json',
      store: 'SQLite',
    },
  },
];
