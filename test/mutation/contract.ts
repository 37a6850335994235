// Owns: mutants of the contract itself: bodies, books, lists, tokens, and brute force against the password.

import { Mutants } from './mutant.ts';

const CONTRACT = 'test/contract/contract.test.ts';
const GUESSING = 'test/auth/guessing.test.ts';
const NIGHTLY_LIST = 'test/nightly/list.test.ts';
const TOKENS = 'test/auth/tokens.test.ts';
const NIGHTLY_TOKENS = 'test/nightly/tokens.test.ts';

export const CONTRACT_MUTANTS = new Mutants()
  .in('src/auth/login-guard.ts')
  .mutant('a right password waits as long as a wrong one', GUESSING, 'after ten failures')
  .change(
    'this.outcomes.succeeded += 1;\n      return { delay: 0 };',
    'this.outcomes.succeeded += 1;\n      return { delay: turn - now };',
  )
  .mutant('six logins of one address wait, not five', GUESSING, 'after ten failures')
  .change('const MOST_DELAYED = 5;', 'const MOST_DELAYED = 6;')
  .mutant('the addresses of a /56 have more failures together', GUESSING, 'IPv6 /56 have 50')
  .change('const FREE_OF_56 = 50;', 'const FREE_OF_56 = 51;')
  .mutant('each /64 of a /48 guesses by itself', GUESSING, 'IPv6 /48 have 250')
  .change('newTally(digits.slice(0, 12), FREE_OF_48)', 'newTally(digits.slice(0, 16), FREE_OF_48)')
  .mutant('each delayed /64 of a /48 gets an answer a second', GUESSING, 'that are delayed wait together')
  .change('networks.slice(spent);', 'networks.slice(spent, spent + 1);')
  .mutant('one /48 uses up the failures of all new addresses', GUESSING, 'of 60,000 guesses')
  .change(
    'queue.lastTurn = turn;',
    '{\n        queue.lastTurn = turn;\n        if (all) all.failures += 1;\n      }',
  )
  .mutant('one delayed address delays another one', GUESSING, 'that are delayed wait together')
  .change(
    'if (all !== undefined && all.failures >=',
    'if (all !== undefined && (spent === -1 ? all.failures : 10_000) >=',
  )
  .mutant('each new address guesses by itself', GUESSING, 'all new addresses have 1,000')
  .change(': all.free)', ': 1001)')
  .mutant('a thousand guesses keep out new people who mistype', GUESSING, 'all new addresses have 1,000')
  .change('const FIRST_FAILURES = 3;', 'const FIRST_FAILURES = 2;')
  .mutant('each new address guesses three times', GUESSING, 'all new addresses have 1,000')
  .change('const FREE_OF_ALL_FOR_FIRST = 10_000;', 'const FREE_OF_ALL_FOR_FIRST = 10_001;')
  .mutant('guesses elsewhere delay an address that has logged in', GUESSING, 'all new addresses have 1,000')
  .change('this.#remember(name);', '')
  .mutant('one of the last 10,000 addresses is forgotten', GUESSING, 'the last 10,000 addresses')
  .change('const MAX_KNOWN = 10_000;', 'const MAX_KNOWN = 9_999;')
  .mutant('guesses of other addresses make one forgotten', GUESSING, 'all new addresses have 1,000')
  .change(
    'if (this.#tallies.size === 0)',
    'if (this.#tallies.size % 9000 === 0) this.#tallies.clear();\n    if (!this.#tallies.size)',
  )
  .in('src/times.ts')
  .mutant('delayed answers go out faster than one a second', GUESSING, 'after ten failures')
  .change('failurePace: SECOND', 'failurePace: 900')
  .in('src/stores/sqlite/store.ts')
  .mutant('a list that cannot be read to its end looks complete', NIGHTLY_LIST, 'when a list breaks off')
  .change(
    'const json = read();',
    'let json: string | undefined;\n      try {\n        json = read();\n      } catch {\n        return;\n      }',
  )
  .mutant('a list does not wait for those that keep a long log', NIGHTLY_LIST, 'waits for those that keep')
  .change('await this.#waitForLog();\n    return this.#lists', 'return this.#lists')
  .mutant('a search does not wait for those that keep a long log', NIGHTLY_LIST, 'waits for those that keep')
  .change('await this.#waitForLog();\n    const found', 'const found')
  .mutant('33 lists are open on SQLite', NIGHTLY_LIST, 'at most 32 lists are open')
  .change('const OPEN_LISTS = 32;', 'const OPEN_LISTS = 33;')
  .mutant(
    'the chunks of a list come from different moments',
    NIGHTLY_LIST,
    'a list shows the moment at which it began',
  )
  .change("db.exec('begin'); // so that all chunks are of one snapshot", '')
  .in('src/stores/postgres/connections.ts')
  .mutant('9 lists are open on PostgreSQL', NIGHTLY_LIST, 'at most 8 lists are open')
  .change('const LIST_CONNECTIONS = 8;', 'const LIST_CONNECTIONS = 9;')
  .in('src/api/books.ts')
  .mutant('a request that reads a book is refused for its body', CONTRACT, 'rule 7: .* when books are read')
  .change(
    'const id = idOf(exchange);\n  const book = id',
    'if (Number(exchange.request.headers["content-length"]) > 0) return answers.INVALID_BOOK;\n  const id = idOf(exchange);\n  const book = id',
  )
  .in('src/json/parse.ts')
  .mutant('a year is rounded to an integer', CONTRACT, 'a field of a wrong type or value')
  .change('&& !isIntegerText(number)', '&& false')
  .mutant('a fraction of 16 digits is rounded', CONTRACT, 'a field of a wrong type or value')
  .change('[\\d.]{16}|', '')
  .mutant('a tiny fraction is rounded to 0', CONTRACT, 'a field of a wrong type or value')
  .change('|[eE]-\\d{3}', '')
  .in('src/auth/tokens.ts')
  .mutant('the crit header of a token is ignored', CONTRACT, 'critical')
  .change('if (header.crit !== undefined) return undefined;', '')
  .mutant('a token is accepted for a second after it has expired', TOKENS, 'a token is valid from the second')
  .change('expiry !== undefined && now < expiry', 'expiry !== undefined && now < expiry + 1')
  .mutant(
    'the cost of refusing a token grows as the square of its length',
    NIGHTLY_TOKENS,
    'the cost of refusing a token',
  )
  .change(
    "const end = token.lastIndexOf('.');",
    "let end = -1;\n  for (let at = token.indexOf('.'); at !== -1; at = token.indexOf('.', at + 1)) {\n    Buffer.from(token.slice(at));\n    end = at;\n  }",
  ).all;
