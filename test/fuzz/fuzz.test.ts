// Whatever bytes arrive from outside, what is promised of their reader holds: for the inputs in corpus/, and for random
// changes of them. Among these are inputs that execute code which no other reaches: a fuzzer led by coverage has found them.
//
// A line of a file in corpus/ has inputs, as JSON has them, with one character for each byte. An input that fails is printed
// in its shortest form, in the same way. To repeat and keep it, add it there. To try many more inputs:
// `npm run test:one -- test/fuzz/fuzz.test.ts --nightly --repeat 1000`.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import '../support/random.ts';
import { pathTo } from '../support/repository.ts';
import { scaled } from '../support/scale.ts';
import * as bodies from './bodies.ts';
import * as files from './files.ts';
import * as headers from './headers.ts';
import * as http from './http.ts';
import * as page from './page.ts';
import * as queries from './queries.ts';
import { Input, type Reader } from './reader.ts';
import * as others from './settings.ts';
import * as workbooks from './workbooks.ts';

const { anyBook, bodyOfABook } = bodies;

/** By their names, and with others that are no readers; `delimited-text` in corpus/ is for `delimitedText`. */
const READERS: object = {
  ...bodies,
  ...files,
  ...headers,
  ...http,
  ...page,
  ...queries,
  ...others,
  ...workbooks,
};
const CORPORA = readdirSync(pathTo('test/fuzz/corpus')).map((file) => file.replace('.txt', ''));

/** Changed inputs of each reader, each night. */
const RUNS = 8000;

/** Bytes; longer inputs would show little more. */
const LONGEST = 400;

/** Texts that mean something to some reader. */
// biome-ignore format: a line for each would make a hundred
const WORDS = [
  '0', '-0', '1e3', '0.5', '1000', '9007199254740991', '9007199254740992', '1e400', '5e-324', '0101-01-01',
  '"title":', '"author":', '"year":', '"id":', '"__proto__":', '"data":[', '"alg":', '"exp":', '"nbf":', '"crit":', 'null',
  'true', '{}', '[]', '},{', '{"id":7}', '":{"', '\\"', '\\u0000', '\\ud800', '\xc3\xa9', '\xef\xbb\xbf', '\xed\xa0\x80',
  '&q=', '&sort=', '&year=', '&limit=', '&cursor=', '&offset=', '&title_contains=', '-title', '%C3%A9', '%00', '%E0%A4',
  '%2F', '""', ',"', '",', '"\n', '\r\n', '\n\n', 'sep=;\n', 'refused', 'publish date', 'W/"a"', 'count=exact', '://',
  'HTTP/1.0', 'Host: h', 'Content-Length: 1', 'Transfer-Encoding: chunked', 'Connection: close', '\r\n0\r\n', '\r\n\r\n', ';a="b"',
  '127.0.0.1', '10.0.0.1', '[::1]', 'A. ', '\xe2\x80\x99', '\xcc\x88', '\xc4\xb0', '\xcf\x82', '\xe3\x82\x99', '\xc2\xad',
];

const SPECIAL = '\0\t\n\r "%\'*+,-./019:;=[\\]_{}\x7f\x80\xbf\xc0\xc3\xe0\xed\xef\xf0\xf4\xfe\xff'.split('');

/** Draws evenly, since every place of an input is as likely to matter as its beginning. */
const anyBelow = (end: number) => fc.noBias(fc.nat(end - 1));

/** Inputs of this corpus in which parts are taken out, repeated and moved, and bytes and words are put in. */
function changesOf(corpus: readonly string[]): fc.Arbitrary<string> {
  const one = fc.constantFrom(...corpus);
  const place = anyBelow(LONGEST);
  const part = fc.tuple(one, place, anyBelow(LONGEST), fc.boolean()).map(([text, at, length, isShort]) => {
    const start = at % (text.length + 1);
    return text.slice(start, start + 1 + (isShort ? length % 4 : length));
  });
  const byte = anyBelow(256).map((code) => String.fromCharCode(code));
  const [special, word] = [fc.constantFrom('', ...SPECIAL), fc.constantFrom('', ...WORDS)];
  const inserted = fc.oneof(special, word, byte, part, fc.constant(''));
  const removed = fc.oneof(fc.constant(0), fc.nat(8), anyBelow(LONGEST));
  const changes = fc.array(fc.record({ at: place, removed, inserted }), { minLength: 1, maxLength: 6 });
  return fc.tuple(one, changes).map(([input, all]) => {
    let text = input;
    for (const { at, removed, inserted } of all) {
      const start = at % (text.length + 1);
      text = text.slice(0, start) + inserted + text.slice(start + removed);
    }
    return text.slice(0, LONGEST);
  });
}

describe('what is promised holds for any bytes', () => {
  assert.equal(CORPORA.length, 19, 'each reader has a corpus');
  for (const name of CORPORA) {
    test(name, async () => {
      const lines = readFileSync(pathTo(`test/fuzz/corpus/${name}.txt`), 'utf8').trimEnd();
      const corpus: string[] = JSON.parse(`[${lines.replaceAll('\n', ',')}]`);
      const reader = Reflect.get(
        READERS,
        name.replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase()),
      );
      await holds(changesOf(corpus), reader, corpus);
    });
  }

  test('any JSON object as the body of a book', async () => {
    await holds(anyBook, bodyOfABook, []);
  });
});

async function holds(inputs: fc.Arbitrary<string>, reader: Reader, corpus: readonly string[]): Promise<void> {
  const property = fc.asyncProperty(inputs, async (input) => reader(new Input(input)));
  const examples = corpus.map((input): [string] => [input]);
  await fc.assert(property, { examples, numRuns: corpus.length + scaled(RUNS) });
}
