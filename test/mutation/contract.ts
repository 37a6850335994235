// Owns: mutants of the contract itself: bodies, books, lists, tokens, and brute force against the password.

import type { Mutant } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const GUESSING = 'test/auth/guessing.test.ts';
const LIST = 'test/contract/list.test.ts';
const TOKENS = 'test/auth/tokens.test.ts';

export const CONTRACT_MUTANTS: readonly Mutant[] = [
  {
    name: 'a right password waits as long as a wrong one',
    file: 'src/auth/login-guard.ts',
    from: "this.#outcomes.succeeded += 1;\n      return { kind: 'answer', delay: 0 };",
    to: "this.#outcomes.succeeded += 1;\n      return { kind: 'answer', delay: turn - now };",
    test: { file: GUESSING, name: 'a right password is never delayed' },
  },
  {
    name: 'six logins of one address wait, not five',
    file: 'src/auth/login-guard.ts',
    from: 'const LONGEST_DELAY = 5 * PACE;',
    to: 'const LONGEST_DELAY = 6 * PACE;',
    test: { file: GUESSING, name: '429 while five wait, WORKERS=1' },
  },
  {
    name: 'delayed answers go out faster than one a second',
    file: 'src/auth/login-guard.ts',
    from: 'const PACE = 1000;',
    to: 'const PACE = 900;',
    test: { file: GUESSING, name: '429 while five wait, WORKERS=1' },
  },
  {
    name: 'a list that cannot be read to its end looks complete',
    file: 'src/stores/sqlite/store.ts',
    from: 'const json = this.read();',
    to: "let json = '';\n      try {\n        json = this.read();\n      } catch {\n        return;\n      }",
    test: { file: LIST, name: 'when a list breaks off', store: 'SQLite' },
  },
  {
    name: '33 lists are open on SQLite',
    file: 'src/stores/sqlite/store.ts',
    from: 'const OPEN_LISTS = 32;',
    to: 'const OPEN_LISTS = 33;',
    test: { file: LIST, name: 'at most 32 lists are open', store: 'SQLite' },
  },
  {
    name: '9 lists are open on PostgreSQL',
    file: 'src/stores/postgres/server/connections.ts',
    from: 'const LIST_CONNECTIONS = 8;',
    to: 'const LIST_CONNECTIONS = 9;',
    test: { file: LIST, name: 'at most 8 lists are open', store: 'PostgreSQL' },
  },
  {
    name: 'the chunks of a list come from different moments',
    file: 'src/stores/sqlite/store.ts',
    from: "this.#db.exec('begin'); // so that all chunks are of one snapshot",
    to: '',
    test: { file: LIST, name: 'a list shows the moment at which it began', store: 'SQLite' },
  },
  {
    name: 'a request that reads a book is refused for its body',
    file: 'src/api/books.ts',
    from: 'const id = idOf(exchange);\n  const book = id',
    to: 'if (Number(exchange.request.headers["content-length"]) > 0) return INVALID_BOOK;\n  const id = idOf(exchange);\n  const book = id',
    test: { file: CONTRACT, name: 'rule 7: .* when books are read', store: 'SQLite' },
  },
  {
    name: 'a year is rounded to an integer',
    file: 'src/json/object.ts',
    from: 'return isIntegerText(context.source) ? value : Number.NaN;',
    to: 'return value;',
    test: {
      file: CONTRACT,
      name: 'a field of a wrong type or value',
      store: 'SQLite',
    },
  },
  {
    name: 'all removals of one book that meet in a batch are 200',
    file: 'src/stores/postgres/books/changes.ts',
    from: 'return states.delete(id);',
    to: 'return states.has(id);',
    test: {
      file: 'test/stores/postgres.test.ts',
      name: 'that meet in a batch exactly one is 200',
      store: 'PostgreSQL',
    },
  },
  {
    name: 'the crit header of a token is ignored',
    file: 'src/auth/tokens.ts',
    from: 'if (header.crit !== undefined) return undefined;',
    to: '',
    test: { file: CONTRACT, name: 'critical', store: 'SQLite' },
  },
  {
    name: 'a token is accepted for a second after it has expired',
    file: 'src/auth/tokens.ts',
    from: 'expiry !== undefined && now < expiry',
    to: 'expiry !== undefined && now < expiry + 1',
    test: { file: TOKENS, name: 'a token is valid from the second', store: 'SQLite' },
  },
  {
    name: 'the cost of refusing a token grows as the square of its length',
    file: 'src/auth/tokens.ts',
    from: "const end = token.lastIndexOf('.');",
    to: "let end = -1;\n  for (let at = token.indexOf('.'); at !== -1; at = token.indexOf('.', at + 1)) {\n    Buffer.from(token.slice(at));\n    end = at;\n  }",
    test: { file: TOKENS, name: 'the cost of refusing a token', store: 'SQLite' },
  },
];
