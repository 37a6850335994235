// Random bodies and ids: an accepted body comes back exactly as it was meant, and none causes an internal error. Expected
// results are derived from the structure of a value, never by JSON.parse. The written cases are in conformance/cases.ts.
// Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { type Body, type Fields, IDS } from '../../conformance/cases.ts';
import { INVALID } from '../../conformance/words.ts';
import { bare, exchange, readEnvelope } from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';
import '../support/random.ts';
import { scaled } from '../support/scale.ts';

const EMPTY = { title: '', author: '', year: 0 };
// A failing case is run again in ever smaller forms; a minute of that is enough.
const RUNS = { numRuns: scaled(300), interruptAfterTimeLimit: 60_000 };

for (const store of STORES) {
  describe(`parsing on ${store.name}`, () => {
    let service: RunningService;

    before(async () => {
      service = await startTestService(await store.freshUrl());
    });
    after(() => service.stop());

    async function ask(method: string, path: string, body?: Body) {
      return bare(await service.client.request(method, path, { body }));
    }

    // A body is parsed without the store: one store is enough for this test.
    if (store === STORES[0]) {
      test('C1, rule 6: JSON with any byte changed is stored or 400, never an internal error', async () => {
        const whole = Buffer.from('{"title":"Ὀδύσσεια \\u00e9","author":"x","year":-7.0e2,"x":[true,null]}');
        const change = fc.record({
          position: fc.nat(whole.length - 1),
          remove: fc.nat(2),
          insert: fc.uint8Array({ maxLength: 3 }),
        });
        await fc.assert(
          fc.asyncProperty(change, async ({ position, remove, insert }) => {
            const rest = whole.subarray(position + remove);
            const body = Buffer.concat([whole.subarray(0, position), insert, rest]);
            const answer = await ask('POST', '/book', body);
            if (answer.status === 201) {
              assert.deepEqual((await ask('GET', `/book/${answer.data.id}`)).data, answer.data);
            } else {
              assert.deepEqual(answer, INVALID);
            }
          }),
          RUNS,
        );
      });
    }

    test('C1, C2, rules 1 to 6: any JSON is stored as it is meant, or gets 400', async () => {
      await fc.assert(
        fc.asyncProperty(document, async (value) => {
          const text = spell(value);
          const expected = meaningOf(value);
          const answer = await ask('POST', '/book', text);
          if (expected === undefined) {
            assert.deepEqual(answer, INVALID);
          } else {
            assert.equal(answer.status, 201);
            assert.deepEqual(answer.data, { id: answer.data.id, ...EMPTY, ...expected });
            assert.deepEqual((await ask('GET', `/book/${answer.data.id}`)).data, answer.data);
          }
        }),
        RUNS,
      );
    });

    test('G2, rule 10: a path names the book whose id it spells, and no other', async () => {
      const { id } = await service.client.create({ title: 'named' });
      const stored = new Set((await service.client.list()).map((book) => String(book.id)));
      const host = `Host: books.test\r\nAuthorization: ${service.client.token}\r\n`;
      const piece = fc.constantFrom(
        ...`0123456789+-.,;:_~!$&'()*=@eExXn%`.split(''),
        '%31',
        '%00',
        '%2e',
        '\\',
      );
      const paths = fc.oneof(
        fc.constantFrom(...IDS),
        fc.array(piece, { minLength: 1, maxLength: 20 }).map((pieces) => pieces.join('')),
        fc.bigInt({ min: 0n, max: 2n ** 70n }).map(String),
        fc.constantFrom(
          `${id}`,
          `0${id}`,
          `${id}0`.padEnd(17, '0'),
          `${id}.`,
          `${id}/`,
          `${id}%20`,
          `-${id}`,
        ),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(paths, { minLength: 20, maxLength: 60 }), async (spellings) => {
          const bytes = spellings.map((path) => `GET /book/${path} HTTP/1.1\r\n${host}\r\n`).join('');
          const answers = await exchange(service, bytes, spellings.length);
          answers.forEach(({ status, body }, position) => {
            const spelling = spellings[position] as string;
            const expected = stored.has(spelling)
              ? [200, 'Book retrieved successfully']
              : isEscapedWell(spelling)
                ? [404, 'Book not found']
                : [400, 'Bad request'];
            const { message } = readEnvelope(body, status);
            // A slash at the end makes it another path.
            if (spelling.endsWith('/')) assert.deepEqual([status, message], [404, 'Not found']);
            else assert.deepEqual([status, message], expected, spelling);
          });
          assert.equal(answers.length, spellings.length);
        }),
        { ...RUNS, numRuns: scaled(20) },
      );
    });
  });
}

/** Whether every % begins a percent-escape, and the bytes are UTF-8 (rule 20). */
function isEscapedWell(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

// A JSON text as a structure, so that its meaning is known without parsing it.

type Json =
  | { readonly kind: 'word'; readonly text: 'null' | 'true' | 'false' }
  | {
      readonly kind: 'number';
      readonly minus: boolean;
      readonly whole: string;
      readonly fraction: string;
      readonly exponent: number | undefined;
    }
  | { readonly kind: 'text'; readonly units: readonly number[]; readonly escaped: boolean }
  | { readonly kind: 'array'; readonly items: readonly Json[] }
  | {
      readonly kind: 'object';
      readonly space: string;
      readonly members: readonly (readonly [Json & { kind: 'text' }, Json])[];
    };

const units = (text: string) => Array.from({ length: text.length }, (_, index) => text.charCodeAt(index));
const textOf = (texts: fc.Arbitrary<string>): fc.Arbitrary<Json & { kind: 'text' }> =>
  fc.record({ kind: fc.constant('text' as const), units: texts.map(units), escaped: fc.boolean() });
const digits = fc.oneof(
  fc.stringMatching(/^[0-9]{0,25}$/),
  fc.constantFrom('0', '000', '9007199254740991', '9007199254740992', '9007199254740993', '5'.repeat(2000)),
);
const number: fc.Arbitrary<Json> = fc.record({
  kind: fc.constant('number' as const),
  minus: fc.boolean(),
  whole: digits.map((any) => any.replace(/^0+(?=.)/, '') || '0'),
  fraction: fc.oneof(fc.constant(''), fc.constantFrom('0', '00', '5'), digits),
  exponent: fc.option(
    fc.oneof(fc.integer({ min: -30, max: 30 }), fc.constantFrom(400, -400, 99_999, -99_999)),
    {
      nil: undefined,
    },
  ),
});
const anyText = textOf(
  fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.constantFrom('\0', 'a\0b', '\ud800', 'x\udc00', '\udc00\ud800', '"', '\\', '/', '\u2028', '\ufeff'),
  ),
);
const leaf: fc.Arbitrary<Json> = fc.oneof(
  fc.record({
    kind: fc.constant('word' as const),
    text: fc.constantFrom('null' as const, 'true' as const, 'false' as const),
  }),
  number,
  anyText,
);
const key = textOf(
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('title', 'author', 'year') },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        'id',
        'Title',
        '__proto__',
        'constructor',
        'toString',
        '',
        'title\0',
        ' year',
      ),
    },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 5 }) },
  ),
);
const nested: fc.Arbitrary<Json> = fc.letrec<{ value: Json; object: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.record({ kind: fc.constant('array' as const), items: fc.array(tie('value'), { maxLength: 3 }) }),
    tie('object'),
  ),
  object: objectOf(tie('value')),
})).value;
/** Mostly objects whose fields mostly have the right type; otherwise nearly all would get 400. */
const document: fc.Arbitrary<Json> = fc.oneof(
  { weight: 8, arbitrary: objectOf(nested) },
  { weight: 20, arbitrary: fc.oneof(fieldsOf(anyText, number), fieldsOf(textOf(fc.string()), number)) },
  { weight: 1, arbitrary: nested },
);

function objectOf(value: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  return fc.record({
    kind: fc.constant('object' as const),
    space: fc.constantFrom('', ' ', '\n', '\t \r\n'),
    members: fc.array(fc.tuple(key, value), { maxLength: 5 }),
  });
}

function fieldsOf(text: fc.Arbitrary<Json>, year: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  const named = (name: string) => textOf(fc.constant(name));
  const member = fc.oneof(
    fc.tuple(named('title'), text),
    fc.tuple(named('author'), text),
    fc.tuple(named('year'), year),
    fc.tuple(named('id'), nested),
  );
  return fc.record({
    kind: fc.constant('object' as const),
    space: fc.constantFrom('', ' '),
    members: fc.array(member, { maxLength: 4 }),
  });
}

/** Writes a value as JSON text. */
function spell(value: Json): string {
  switch (value.kind) {
    case 'word':
      return value.text;
    case 'number': {
      const { minus, whole, fraction, exponent } = value;
      const end = exponent === undefined ? '' : `e${exponent}`;
      return `${minus ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}${end}`;
    }
    case 'text':
      return `"${spellUnits(value.units, value.escaped)}"`;
    case 'array':
      return `[${value.items.map(spell).join(',')}]`;
    case 'object': {
      const { space } = value;
      const members = value.members.map(
        ([name, member]) => `${spell(name)}${space}:${space}${spell(member)}`,
      );
      return `${space}{${space}${members.join(`${space},${space}`)}${space}}${space}`;
    }
  }
}

function spellUnits(all: readonly number[], escaped: boolean): string {
  const text = String.fromCharCode(...all);
  let spelled = '';
  for (const character of text) {
    const mustEscape =
      character < ' ' || character === '"' || character === '\\' || !character.isWellFormed();
    if (mustEscape || escaped) {
      for (const unit of units(character)) spelled += `\\u${unit.toString(16).padStart(4, '0')}`;
    } else {
      spelled += character;
    }
  }
  return spelled;
}

/** The book fields that a value means; undefined if it is not a book (rules 1 to 6). */
function meaningOf(value: Json): Fields | undefined {
  if (value.kind !== 'object') return undefined;
  const last = new Map(value.members.map(([name, member]) => [String.fromCharCode(...name.units), member]));
  const fields: { title?: string; author?: string; year?: number } = {};
  for (const name of ['title', 'author'] as const) {
    const member = last.get(name);
    if (member === undefined) continue;
    if (member.kind !== 'text' || member.units.includes(0)) return undefined;
    const text = String.fromCharCode(...member.units);
    if (!text.isWellFormed()) return undefined;
    fields[name] = text;
  }
  const year = last.get('year');
  if (year === undefined) return fields;
  const integer = year.kind === 'number' ? integerOf(year) : undefined;
  if (integer === undefined || integer > 2n ** 53n - 1n || integer < 1n - 2n ** 53n) return undefined;
  return { ...fields, year: Number(integer) };
}

/** A number's value by decimal arithmetic; undefined if it is not an integer, or ends in more than a hundred zeros. */
function integerOf({ minus, whole, fraction, exponent = 0 }: Json & { kind: 'number' }): bigint | undefined {
  const all = BigInt(whole + fraction);
  if (all === 0n) return 0n;
  const places = exponent - fraction.length;
  if (places > 100) return undefined;
  const scale = 10n ** BigInt(Math.min(Math.abs(places), 5000));
  if (places < 0 && all % scale !== 0n) return undefined;
  const magnitude = places < 0 ? all / scale : all * scale;
  return minus ? -magnitude : magnitude;
}
