// Owns: mutants of the stores: what they do to their file or server, and what they do if that fails.

import type { Mutant } from './mutant.ts';

const SQLITE = 'test/stores/sqlite.test.ts';
const POSTGRES = 'test/stores/postgres.test.ts';

export const STORES_MUTANTS: readonly Mutant[] = [
  {
    name: 'a write to a SQLite file that has been moved is acknowledged',
    file: 'src/stores/sqlite/writer.ts',
    from: 'if (this.#file.assertInPlace() === 0)',
    to: 'if (false)',
    test: { file: SQLITE, name: ' moved: ', store: 'SQLite' },
  },
  {
    name: 'a write without a write-ahead log is acknowledged',
    file: 'src/stores/sqlite/writer.ts',
    from: 'for (const companion of this.#companions) companion.assertInPlace();',
    to: '',
    test: { file: SQLITE, name: 'without its write-ahead log', store: 'SQLite' },
  },
  {
    name: 'a single read needs its SQLite file in place',
    file: 'src/stores/sqlite/store.ts',
    from: 'this.#begin.run();',
    to: 'this.#file.assertInPlace(); this.#begin.run();',
    test: { file: SQLITE, name: ' deleted: ', store: 'SQLite' },
  },
  {
    name: 'a list comes from another SQLite file',
    file: 'src/stores/sqlite/store.ts',
    from: 'this.#file.assertInPlace(); // else',
    to: '// else',
    test: { file: SQLITE, name: 'never comes from another file', store: 'SQLite' },
  },
  {
    name: 'a write that was answered with 503 is carried out later',
    file: 'src/stores/sqlite/store.ts',
    from: 'const WRITE_TIMEOUT = 3000;',
    to: 'const WRITE_TIMEOUT = 30_000;',
    test: { file: SQLITE, name: 'none is carried out later', store: 'SQLite' },
  },
  {
    name: 'a transaction that the server aborts is sent six times',
    file: 'src/stores/postgres/connections.ts',
    from: 'const MAX_ATTEMPTS = 5;',
    to: 'const MAX_ATTEMPTS = 6;',
    test: { file: POSTGRES, name: 'every time, with a serialization failure', store: 'PostgreSQL' },
  },
  {
    name: 'a transaction that the server aborts is sent four times',
    file: 'src/stores/postgres/connections.ts',
    from: 'const MAX_ATTEMPTS = 5;',
    to: 'const MAX_ATTEMPTS = 4;',
    test: { file: POSTGRES, name: 'every time, with a serialization failure', store: 'PostgreSQL' },
  },
  {
    name: 'a deadlock is not retried',
    file: 'src/stores/postgres/connections.ts',
    from: "new Set(['40001', '40P01'])",
    to: "new Set(['40001'])",
    test: { file: POSTGRES, name: 'with 40P01, is retried', store: 'PostgreSQL' },
  },
  {
    name: 'a write whose answer is lost is retried',
    file: 'src/stores/postgres/connections.ts',
    from: "const isTakenBack = SERIALIZATION_FAILURES.has(code ?? '');",
    to: 'const isTakenBack = code === undefined || SERIALIZATION_FAILURES.has(code);',
    test: { file: 'test/stores/outage.test.ts', name: 'whose answer is lost', store: 'PostgreSQL' },
  },
  {
    name: 'changes of locked books use the connections of all other books',
    file: 'src/stores/postgres/store.ts',
    from: "query<Book>('held', UPDATE_HELD, parameters, deadline)",
    to: "query<Book>('batches', UPDATE_HELD, parameters, deadline)",
    test: { file: POSTGRES, name: 'of a hundred such books', store: 'PostgreSQL' },
  },
  {
    name: 'a locked book delays the changes of its neighbours',
    file: 'src/stores/postgres/store.ts',
    from: 'for update skip locked\n  ), stored',
    to: 'for update\n  ), stored',
    test: { file: POSTGRES, name: 'delays only its own changes', store: 'PostgreSQL' },
  },
  {
    name: 'only its owner can advance a sequence that is behind',
    file: 'src/stores/postgres/structure.ts',
    from: 'lock table books in share row exclusive mode;',
    to: 'alter sequence books_id_seq no cycle;',
    test: { file: POSTGRES, name: 'a role that may use the table', store: 'PostgreSQL' },
  },
  {
    name: 'a host that has become a standby is read from',
    file: 'src/stores/postgres/hosts.ts',
    from: "watched: wanted !== 'any'",
    to: 'watched: false',
    test: { file: 'test/stores/failover.test.ts', name: 'nothing stale is read', store: 'PostgreSQL' },
  },
  {
    name: 'a list is not answered within 5 s while its server is silent',
    file: 'src/stores/postgres/store.ts',
    from: 'const FIRST_CHUNK_TIMEOUT = 4500;',
    to: 'const FIRST_CHUNK_TIMEOUT = 7000;',
    test: { file: 'test/limits/answers.test.ts', name: 'while the network is cut', store: 'PostgreSQL' },
  },
  {
    name: 'a store that was slow once refuses requests later',
    file: 'src/books/batches.ts',
    from: 'if (this.idle) {',
    to: 'if (false) {',
    test: { file: 'test/stores/postgres.test.ts', name: 'is free, no request', store: 'PostgreSQL' },
  },
  {
    name: 'a locked book has a deadline of its own',
    file: 'src/books/batches.ts',
    from: 'if (late.length === 0) clearTimeout(batch.timer);',
    to: 'if (late.length >= 0) clearTimeout(batch.timer);',
    test: { file: 'test/limits/answers.test.ts', name: 'its book is locked', store: 'PostgreSQL' },
  },
  {
    name: 'every statement that fails ends its connection',
    file: 'src/stores/postgres/connections.ts',
    from: 'client.release(code === undefined || HOST_FAILURE.test(code));',
    to: 'client.release(true);',
    test: { file: POSTGRES, name: 'costs no connection', store: 'PostgreSQL' },
  },
  {
    name: 'stalled readers block the lists of all others',
    file: 'src/stores/open-lists.ts',
    from: 'if (first === undefined) return false;',
    to: 'if (Date.now() > 0) return false;',
    test: { file: 'test/contract/list.test.ts', name: 'gives way', store: 'SQLite' },
  },
  {
    name: 'a write follows synchronous_commit of the server',
    file: 'src/stores/postgres/statements.ts',
    from: "when 'off' then 'on'",
    to: "when 'off' then 'off'",
    test: { file: POSTGRES, name: 'synchronous_commit', store: 'PostgreSQL' },
  },
];
