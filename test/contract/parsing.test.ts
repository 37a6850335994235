// Bodies, byte by byte: whatever JSON may look like, and whatever only looks like it. The same cases and
// the same answers on every store: what is accepted comes back exactly as it was meant, what is refused
// stores nothing, and nothing is ever a fault of ours. What must come out is written down here or worked out
// from a value's own structure, never by JSON.parse. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { exchange, readEnvelope, request } from '../support/client.ts';
import { type RunningService, STORES, startTestService } from '../support/service.ts';

interface Fields {
  readonly title?: string;
  readonly author?: string;
  readonly year?: number;
}
type Body = string | Uint8Array;

const EMPTY = { title: '', author: '', year: 0 };
const INVALID = { status: 400, message: 'Invalid input', data: null };
// What fails is run again in ever smaller forms; half a minute of that will do.
const RUNS = { numRuns: 300, interruptAfterTimeLimit: 30_000 };

for (const store of STORES) {
  describe(`parsing on ${store.name}`, { timeout: 120_000 }, () => {
    let service: RunningService;

    before(async () => {
      service = await startTestService(await store.freshUrl());
    });
    after(() => service.stop());

    async function ask(method: string, path: string, body?: Body) {
      const { status, message, data } = await service.client.request(method, path, { body });
      return { status, message, data };
    }

    /** Creates a book of it and changes one by it: both must have just these fields. */
    async function assertAccepted(body: Body, fields: Fields): Promise<void> {
      const name = nameOf(body);
      const created = await ask('POST', '/book', body);
      assert.equal(created.status, 201, name);
      const { id } = created.data;
      assert.deepEqual(created.data, { id, ...EMPTY, ...fields }, name);
      assert.deepEqual((await ask('GET', `/book/${id}`)).data, created.data, name);
      const other = { title: 'another', author: 'another', year: 4 };
      const changed = await ask('PUT', `/book/${(await service.client.create(other)).id}`, body);
      assert.equal(changed.status, 200, name);
      assert.deepEqual(changed.data, { id: changed.data.id, ...other, ...fields }, name);
      assert.deepEqual((await ask('GET', `/book/${changed.data.id}`)).data, changed.data, name);
    }

    async function assertAllRefused(bodies: readonly Body[]): Promise<void> {
      const kept = await service.client.create({ title: 'kept', author: 'kept', year: 4 });
      for (const body of bodies) {
        assert.deepEqual(await ask('POST', '/book', body), INVALID, nameOf(body));
        assert.deepEqual(await ask('PUT', `/book/${kept.id}`, body), INVALID, nameOf(body));
      }
      assert.deepEqual((await service.client.list()).at(-1), kept, 'nothing is stored, nothing changed');
    }

    test('C2, U3, rules 1 and 6: every form of a JSON object is read', async () => {
      for (const [body, fields] of READABLE) await assertAccepted(body, fields);
    });

    test('C1, U2, rules 4 and 6: what is no JSON object in UTF-8 is 400 and stores nothing', async () => {
      await assertAllRefused(UNREADABLE);
    });

    test('T1, rule 15: what is no JSON object in UTF-8 is no login either', async () => {
      for (const body of UNREADABLE) {
        const { status, message, data } = await request(service, 'POST', '/token', { body });
        const expected = [400, 'Invalid request payload', null];
        assert.deepEqual([status, message, data], expected, nameOf(body));
      }
    });

    test('C1, U2, rules 2, 3 and 4: a field of a wrong type or value is 400 and stores nothing', async () => {
      const wrong = ['title', 'author'].flatMap((key) => NO_TEXTS.map((value) => `{"${key}":${value}}`));
      await assertAllRefused([...wrong, ...NO_YEARS.map((value) => `{"year":${value}}`)]);
    });

    test('rule 3: a year is the number that its text names, or 400', async () => {
      for (const [text, year] of YEARS) await assertAccepted(`{"year":${text}}`, { year });
    });

    test('rule 5: keys are compared once their escapes are read, and no key is special', async () => {
      for (const [body, fields] of KEYS) await assertAccepted(body, fields);
      assert.equal(({} as { polluted?: boolean }).polluted, undefined);
    });

    test('rule 4: text that goes wrong elsewhere comes back code point for code point', async () => {
      for (const text of NAUGHTY) {
        await assertAccepted(JSON.stringify({ title: text, author: text }), { title: text, author: text });
      }
      const listed = (await service.client.list()).slice(-2 * NAUGHTY.length);
      assert.deepEqual(
        listed.map(({ title }) => title),
        NAUGHTY.flatMap((text) => [text, text]),
      );
    });

    test('rules 4 and 22: a title of a whole body comes back code point for code point', async () => {
      const room = 1024 * 1024 - '{"title":""}'.length;
      for (const unit of ['x', 'é', '漢', '📚']) {
        const title = unit.repeat(Math.floor(room / Buffer.byteLength(unit)));
        await assertAccepted(`{"title":"${title}"}`, { title });
      }
    });

    test('rule 6: what is nested deeply is read or 400, and the service goes on', async () => {
      for (const inner of ['0', '0.5']) {
        for (const depth of [100, 10_000, 100_000]) {
          for (const [opening, closing] of [
            ['[', ']'],
            ['{"a":', '}'],
          ] as const) {
            const body = `{"title":"deep","x":${opening.repeat(depth)}${inner}${closing.repeat(depth)}}`;
            const { status } = await ask('POST', '/book', body);
            assert.ok(status === 201 || (status === 400 && depth > 100), `${status} at ${depth}`);
          }
        }
      }
      assert.equal((await ask('POST', '/book', '{}')).status, 201);
    });

    test('C1, C2, rules 1 to 6: any JSON is stored as it is meant, or 400', async () => {
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

    test('C1, rule 6: JSON with any byte changed is stored or 400, never a fault of ours', async () => {
      const whole = Buffer.from('{"title":"Ὀδύσσεια \\u00e9","author":"x","year":-7.0e2,"x":[true,null]}');
      const change = fc.record({
        position: fc.nat(whole.length - 1),
        remove: fc.nat(2),
        insert: fc.uint8Array({ maxLength: 3 }),
      });
      await fc.assert(
        fc.asyncProperty(change, async ({ position, remove, insert }) => {
          const body = Buffer.concat([
            whole.subarray(0, position),
            insert,
            whole.subarray(position + remove),
          ]);
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
            // A slash at the end makes another path of it.
            if (spelling.endsWith('/')) assert.deepEqual([status, message], [404, 'Not found']);
            else assert.deepEqual([status, message], expected, spelling);
          });
          assert.equal(answers.length, spellings.length);
        }),
        { numRuns: 30, interruptAfterTimeLimit: 30_000 },
      );
    });
  });
}

function nameOf(body: Body): string {
  return (typeof body === 'string' ? body : Buffer.from(body).toString('latin1')).slice(0, 80);
}

/** Whether every % begins the escape of a byte, and the bytes are UTF-8 (rule 20). */
function isEscapedWell(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

// A JSON text as a structure, so that what it means is known without reading it.

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
/** Mostly objects whose fields mostly are of the right type, or all would be 400. */
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

/** Writes a value down. */
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

/** The fields that a value means; undefined when it is no book (rules 1 to 6). */
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

/** A number's value as schools work it out; undefined when it is no integer, or has a hundred digits. */
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

/** One byte for each character. */
const bytes = (text: string) => Buffer.from(text, 'latin1');
/** A title of raw bytes. */
const titled = (text: string) => bytes(`{"title":"${text}"}`);
const utf16 = (text: string, order: 'little' | 'big') => {
  const encoded = Buffer.from(text, 'utf16le');
  return order === 'little' ? encoded : encoded.swap16();
};
/** A number of so many digits. */
const long = (digit: string, count: number) => digit.repeat(count);

const READABLE: readonly (readonly [Body, Fields])[] = [
  ['{}', {}],
  [' {} ', {}],
  ['\t\n\r {\t\n\r }\t\n\r ', {}],
  ['{"title":""}', { title: '' }],
  [' { "title" : "a" , "year" : 1 } ', { title: 'a', year: 1 }],
  ['{"title":"a","author":"b","year":1}', { title: 'a', author: 'b', year: 1 }],
  ['{"year":1,"author":"b","title":"a"}', { title: 'a', author: 'b', year: 1 }],
  ['{"title":"\\"\\\\\\/\\b\\f\\n\\r\\t"}', { title: '"\\/\b\f\n\r\t' }],
  ['{"title":"\\u0041\\u00e9\\u6f22\\uD83D\\uDCDA"}', { title: 'Aé漢📚' }],
  ['{"title":"\\ud83d\\udcda\\uD83d\\udCDA"}', { title: '📚📚' }],
  ['{"title":"\\u0001\\u001F\\u007f"}', { title: '\u0001\u001f\u007f' }],
  ['{"title":"\u007f\u0080\u2028\u2029"}', { title: '\u007f\u0080\u2028\u2029' }],
  ['{"title":"\\uFFFF\\uFFFE\\uFEFF"}', { title: '\uffff\ufffe\ufeff' }],
  ['{"title":"\\uDBFF\\uDFFF"}', { title: '\u{10ffff}' }],
  ['{"title":"\u{10ffff}\uffff\ufffe"}', { title: '\u{10ffff}\uffff\ufffe' }],
  ['{"title":"\\\\u0000"}', { title: '\\u0000' }],
  ['{"title":"\\\\ud800"}', { title: '\\ud800' }],
  ['{"title":"\\/*no comment*\\/ // none"}', { title: '/*no comment*/ // none' }],
  ['{"title":"null","author":"true"}', { title: 'null', author: 'true' }],
  ['{"title":"{\\"title\\":1}"}', { title: '{"title":1}' }],
  ['{"title":"1.5e3"}', { title: '1.5e3' }],
  ['{"title":"x","x":null}', { title: 'x' }],
  ['{"x":[]}', {}],
  ['{"x":[[[]],{},{"":{}}]}', {}],
  ['{"x":[1,-1,0.5,1e400,-1e-400,true,false,null,"\\ud800","\\u0000"]}', {}],
  ['{"x":{"title":1,"year":"x"},"title":"outer"}', { title: 'outer' }],
  ['{"x":"\\udc00","title":"beside"}', { title: 'beside' }],
  [titled('\xc3\xa9'), { title: 'é' }],
  [titled('\xe2\x82\xac'), { title: '€' }],
  [titled('\xf0\x9f\x93\x9a'), { title: '📚' }],
  [titled('\xf4\x8f\xbf\xbf'), { title: '\u{10ffff}' }],
  [titled('\xee\x80\x80'), { title: '\ue000' }],
  [titled('\xed\x9f\xbf'), { title: '\ud7ff' }],
  [titled('\xef\xbb\xbf'), { title: '\ufeff' }],
];

const UNREADABLE: readonly Body[] = [
  // No object
  '"{}"',
  '0',
  '-0',
  '1.5',
  '1e400',
  'false',
  '[null]',
  '[{}]',
  '[[]]',
  '{}{}',
  '{},',
  '{} {}',
  '[],{}',
  '\n',
  '\t',
  '\0',
  '\x1a',
  'undefined',
  'NaN',
  'x',
  '{}x',
  '{}\0',
  '{}\x0b',
  '\x0c{}',
  '\xa0{}',
  '\u2028{}',
  '{}\u3000',
  '\u200b{}',
  '{}//',
  '{}/**/',
  '{};',
  '({})',
  'title=x&year=1',
  '<title>x</title>',
  '---\ntitle: x',
  '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nx\r\n--b--\r\n',
  '{}\n{}',
  '#{}',
  '!{}',
  '{}]',
  '{}}',
  // Structure
  '}',
  ']',
  '{]',
  '[}',
  '{"title"}',
  '{"title":}',
  '{"title":,}',
  '{:"x"}',
  '{,}',
  '{,"title":"x"}',
  '{"title":"x",,}',
  '{"title":"x";"year":1}',
  '{"title":"x" "year":1}',
  '{"title" "x"}',
  '{"title"="x"}',
  '{"title"=>"x"}',
  '{"title"::"x"}',
  '{"title":"x":"y"}',
  '{"title":"x","year"}',
  '{"title":"x","year":}',
  '{{}}',
  '{[]}',
  '{"title":"x"',
  '{"title":"x",',
  '{"title":"x","year":1',
  '{"title":"x","year":1,}',
  '{"title":"x","x":[1,]}',
  '{"x":[1,2}',
  '{"x":[1 2]}',
  '{"x":[,1]}',
  '{"x":[1,,2]}',
  '{"x":{"y":1,}}',
  '{"x":[}',
  '{"x":{]',
  '{"x":(1)}',
  '{"x":[1}]',
  // Keys
  '{title:"x"}',
  '{1:"x"}',
  '{null:"x"}',
  '{true:1}',
  '{["title"]:"x"}',
  '{\'title\':"x"}',
  '{`title`:"x"}',
  '{"ti\ntle":"x"}',
  '{"a\\x":1}',
  '{"\\u00zz":1}',
  '{...{}}',
  '{"title"\0:"x"}',
  // Comments
  '{/**/}',
  '{"title":"x"/**/}',
  '{"title":"x"//y\n}',
  '/* x */{}',
  '// x\n{}',
  '{"title":/**/"x"}',
  '{} # x',
  '{"year":1/**/}',
  '<!-- x -->{}',
  // Texts
  '{"title":\'x\'}',
  '{"title":`x`}',
  '{"title":"x}',
  '{"title":x"}',
  '{"title":"x""y"}',
  '{"title":"x"y}',
  '{"title":"\\"}',
  '{"title":"\\x41"}',
  '{"title":"\\a"}',
  '{"title":"\\0"}',
  '{"title":"\\v"}',
  '{"title":"\\\'"}',
  '{"title":"\\U0041"}',
  '{"title":"\\u"}',
  '{"title":"\\u1"}',
  '{"title":"\\u12"}',
  '{"title":"\\u123"}',
  '{"title":"\\u12g4"}',
  '{"title":"\\u{41}"}',
  '{"title":"\\u+041"}',
  '{"title":"\\u 041"}',
  '{"title":"\\ud83d\\u"}',
  '{"title":"\\ud83d\\udc"}',
  '{"title":"\\\n"}',
  '{"title":"\\ x"}',
  '{"title":"\\é"}',
  '{"title":"\\📚"}',
  '{"title":"\t"}',
  '{"title":"\r"}',
  '{"title":"\0"}',
  '{"title":"\x01"}',
  '{"title":"\x1f"}',
  '{"title":"\b"}',
  '{"title":u"x"}',
  '{"title":"x"+"y"}',
  // Numbers
  ...[
    '00',
    '01',
    '-01',
    '-00',
    '+0',
    '-',
    '+',
    '--1',
    '-+1',
    '- 1',
    '1 2',
    '1.',
    '-1.',
    '.1',
    '-.1',
    '1..0',
    '1.0.0',
    '1.e1',
    '.e1',
    '1e',
    '1e+',
    '1e-',
    '1e 1',
    '1 e1',
    '1e1.0',
    '1e0x1',
    '1ee1',
    '1e++1',
    '1E',
    '0e',
    '0.e',
    '00.0',
    '0x',
    '0x1F',
    '0o7',
    '0b1',
    '1_000',
    "1'000",
    '1,000',
    '1n',
    '1f',
    '1L',
    '1d',
    '1/2',
    '1+1',
    '0,5',
    'nan',
    'NaN',
    '-NaN',
    'Inf',
    'Infinity',
    '-Infinity',
    '+Infinity',
    '1#INF',
    '∞',
    '٣',
    '１',
    '²',
    '1é',
    'e1',
    '1\0',
    '-\0',
    '--',
    '1e400x',
    '0.5-',
    'Number(1)',
  ].map((number) => `{"x":${number}}`),
  // Words
  ...[
    'True',
    'TRUE',
    'nul',
    'nulll',
    'Null',
    'NULL',
    'nil',
    'None',
    'tru',
    'truee',
    'fals',
    'undefined',
    'void',
    'true false',
    '!true',
    'n\\u0075ll',
    'new Date()',
    'function(){}',
    '/x/',
    'Symbol()',
    '@x',
    '$x',
  ].map((word) => `{"x":${word}}`),
  // Other encodings
  ...(['little', 'big'] as const).flatMap((order) => [
    utf16('{}', order),
    utf16('\ufeff{"title":"x"}', order),
    utf16('{"title":"漢"}', order),
  ]),
  bytes('\xef\xbb\xbf{}'),
  bytes('{}\xef\xbb\xbf'),
  bytes('\xff\xfe{}'),
  bytes('\xfe\xff{}'),
  bytes('\xef\xbb\xbf'),
  bytes('\xef\xbb{}'),
  bytes('{\0}\0'),
  bytes('+AHs-+AH0-'),
  bytes('\x00\x00\x00{\x00\x00\x00}'),
  // Bytes that are not UTF-8: alone, broken off, too long, surrogates, beyond the last character
  ...[
    '\x80',
    '\xbf',
    '\xc3',
    '\xe2\x82',
    '\xf0\x9f\x93',
    '\xc3(',
    '\xe2(\xa1',
    '\xe2\x82(',
    '\xf0(\x8c\xbc',
    '\xf0\x90(\xbc',
    '\xf0\x9f\x93\xc3\xa9',
    '\xa0\xa1',
    '\xc0\x80',
    '\xc0\xaf',
    '\xc1\xbf',
    '\xe0\x80\x80',
    '\xe0\x80\xaf',
    '\xe0\x9f\xbf',
    '\xf0\x80\x80\x80',
    '\xf0\x80\x80\xaf',
    '\xf0\x8f\xbf\xbf',
    '\xed\xa0\x80',
    '\xed\xad\xbf',
    '\xed\xb0\x80',
    '\xed\xbf\xbf',
    '\xed\xa0\xbd\xed\xb3\x9a',
    '\xf4\x90\x80\x80',
    '\xf5\x80\x80\x80',
    '\xf7\xbf\xbf\xbf',
    '\xf8\x88\x80\x80\x80',
    '\xfb\xbf\xbf\xbf\xbf',
    '\xfc\x84\x80\x80\x80\x80',
    '\xfd\xbf\xbf\xbf\xbf\xbf',
    '\xfe',
    '\xff',
    '\xe9',
    '\x93x\x94',
    '\xe2\x82\xac\xe2',
  ].map(titled),
  bytes('{"\xff":1}'),
  bytes('{"x":"\xff"}'),
  bytes('{"title":"ok"}\xff'),
  bytes('\xff{"title":"ok"}'),
  bytes('{"title":"ok","x":\xff}'),
  // Deep
  '{"title":'.repeat(100_000),
  `{"x":${'['.repeat(100_000)}}`,
  `${'['.repeat(100_000)}{}${']'.repeat(100_000)}`,
  `${'{"":'.repeat(50_000)}1${'}'.repeat(49_999)}`,
  ']'.repeat(100_000),
  '"'.repeat(99_999),
  '\\'.repeat(100_000),
  ','.repeat(100_000),
  `${'{}'.repeat(50_000)}`,
  ' '.repeat(100_000),
  '-'.repeat(100_000),
];

const NO_TEXTS: readonly string[] = [
  'null',
  'true',
  'false',
  '0',
  '1.5',
  '-1e400',
  '[]',
  '["x"]',
  '[[]]',
  '{}',
  '{"x":"y"}',
  '{"toString":"x"}',
  '{"length":1}',
  '"\\u0000"',
  '"x\\u0000"',
  '"\\u0000x"',
  '"\\ud800"',
  '"\\udfff"',
  '"\\ud800x"',
  '"x\\udc00"',
  '"\\udc00\\ud800"',
  '"\\ud83d\\ud83d\\udcda"',
  '"\\ud83d\\udcda\\udcda"',
  '"\\ud800\\u0041"',
  '"\\uDBFF"',
  '"\\ud83d\\\\udcda"',
  '"\\uD83D \\uDCDA"',
  '"\\ud83d\\n\\udcda"',
];

const NO_YEARS: readonly string[] = [
  'null',
  'true',
  'false',
  '""',
  '"1"',
  '"x"',
  '" 1"',
  '"1e3"',
  '"NaN"',
  '"0x10"',
  '[]',
  '[1]',
  '[[1]]',
  '{}',
  '{"year":1}',
  '{"valueOf":1}',
  '0.5',
  '-0.5',
  '1.1',
  '0.1e0',
  '1e-1',
  '10e-2',
  '15e-1',
  '123.456e2',
  '1e-400',
  '-1e-400',
  '1e-99999',
  '0.000000000000000000001',
  '1.0000000000000000000000001',
  '4503599627370496.5',
  '4503599627370497.5',
  '9007199254740990.5',
  '9007199254740991.5',
  '-9007199254740990.5',
  '9007199254740992',
  '9007199254740992.0',
  '9007199254740993',
  '9007199254740993.0',
  '-9007199254740992',
  '-9007199254740993',
  '9007199254740992e0',
  '90071992547409920e-1',
  '9.007199254740992e15',
  '9.007199254740993e15',
  '900719925474099.2e1',
  '0.9007199254740992e16',
  '9007199254740991.1',
  '9007199254740990.99999999',
  '90071992547409911e-1',
  '9007199254740991e1',
  '10000000000000000',
  '1e16',
  '9223372036854775807',
  '-9223372036854775808',
  '9223372036854775808',
  '18446744073709551615',
  '18446744073709551616',
  '1e18',
  '1e19',
  '1e21',
  '1e22',
  '1e100',
  '1e308',
  '1.7976931348623157e308',
  '1e309',
  '-1e309',
  '1e400',
  '1e99999',
  '-1e99999',
  `1e${long('9', 400)}`,
  `1e-${long('9', 400)}`,
  long('1', 309),
  long('9', 5000),
  `-${long('9', 5000)}`,
  `0.${long('0', 5000)}1`,
  `1.${long('0', 5000)}1`,
  `1${long('0', 5000)}`,
  `1${long('0', 16)}.${long('0', 100)}`,
  `0.${long('9', 5000)}`,
  '5e-324',
  '2.2250738585072014e-308',
  '4.9e-325',
  '2.5e-1',
  '1234567890123456789012345678901234567890',
];

const YEARS: readonly (readonly [string, number])[] = [
  ['0', 0],
  ['-0', 0],
  ['-0.0', 0],
  ['0.0', 0],
  ['0e0', 0],
  ['0E+5', 0],
  ['-0e-5', 0],
  ['0e400', 0],
  ['0e-400', 0],
  ['-0.000e-99999', 0],
  [`0e${long('9', 400)}`, 0],
  [`0.${long('0', 5000)}`, 0],
  ['1', 1],
  ['-1', -1],
  ['1.0', 1],
  ['-1.0', -1],
  ['1e0', 1],
  ['1E0', 1],
  ['1e+0', 1],
  ['1e-0', 1],
  ['1e00', 1],
  ['1e+002', 100],
  ['1.0e1', 10],
  ['1.5e1', 15],
  ['0.5e1', 5],
  ['0.1e1', 1],
  ['10e-1', 1],
  ['-100e-2', -1],
  ['1000e-3', 1],
  ['123.456e3', 123456],
  ['2020.00000000000000000000', 2020],
  [`2020.${long('0', 5000)}`, 2020],
  [`1${long('0', 400)}e-400`, 1],
  [`0.${long('0', 399)}1e400`, 1],
  ['1e15', 1e15],
  ['9e15', 9e15],
  ['-9e15', -9e15],
  ['4503599627370496', 4503599627370496],
  ['4503599627370497', 4503599627370497],
  ['9007199254740990', 9007199254740990],
  ['9007199254740991', 9007199254740991],
  ['-9007199254740991', -9007199254740991],
  ['9007199254740991.0', 9007199254740991],
  ['90071992547409910e-1', 9007199254740991],
  ['900719925474099100e-2', 9007199254740991],
  ['9.007199254740991e15', 9007199254740991],
  ['9.007199254740991E+15', 9007199254740991],
  ['0.9007199254740991e16', 9007199254740991],
  ['-0.9007199254740991e16', -9007199254740991],
  ['9007199254740.991e3', 9007199254740991],
  ['9007199254740990.0', 9007199254740990],
  ['2147483647', 2147483647],
  ['2147483648', 2147483648],
  ['-2147483649', -2147483649],
  ['4294967296', 4294967296],
];

const KEYS: readonly (readonly [string, Fields])[] = [
  ['{"\\u0074itle":"escaped"}', { title: 'escaped' }],
  ['{"\\u0074\\u0069\\u0074\\u006c\\u0065":"escaped","\\u0079ear":7}', { title: 'escaped', year: 7 }],
  ['{"title":"first","\\u0074itle":"last"}', { title: 'last' }],
  ['{"\\u0074itle":"first","title":"last"}', { title: 'last' }],
  ['{"title":1,"title":"last"}', { title: 'last' }],
  ['{"title":null,"title":"\\u0000","title":"last"}', { title: 'last' }],
  ['{"year":"x","year":1.5,"year":2}', { year: 2 }],
  ['{"year":1e400,"year":1.0}', { year: 1 }],
  [
    '{"Title":"x","TITLE":1,"title ":2," title":3,"titl\\u0435":4,"title\\u0000":5,"tit\\u006ce\\u0301":6}',
    {},
  ],
  ['{"":"x","0":"y","length":5}', {}],
  ['{"id":7}', {}],
  ['{"id":"x"}', {}],
  ['{"id":null}', {}],
  ['{"id":-1,"title":"t"}', { title: 't' }],
  ['{"id":9007199254740993}', {}],
  ['{"id":{"id":1}}', {}],
  ['{"id":[1,2,3]}', {}],
  ['{"ID":1,"_id":2,"rowid":3}', {}],
  ['{"__proto__":{"title":"x","polluted":true}}', {}],
  ['{"__proto__":null,"title":"t"}', { title: 't' }],
  ['{"__proto__":1,"\\u005f_proto__":{"year":5}}', {}],
  ['{"constructor":{"prototype":{"polluted":true}}}', {}],
  ['{"constructor":null,"prototype":{"polluted":true}}', {}],
  ['{"toString":"x","valueOf":1,"toJSON":"x"}', {}],
  ['{"hasOwnProperty":1,"then":{"then":1}}', {}],
  ['{"__defineGetter__":"x","__lookupSetter__":1}', {}],
  ['{"x":{"__proto__":{"polluted":true}}}', {}],
  ['{"title":"t","__proto__":{"title":1}}', { title: 't' }],
  [
    `{${Array.from({ length: 10_000 }, (_, number) => `"k${number}":${number}.5`).join()},"year":3}`,
    { year: 3 },
  ],
  [`{"${'k'.repeat(100_000)}":1,"year":4}`, { year: 4 }],
];

const IDS: readonly string[] = [
  '0',
  '00',
  '-0',
  '01',
  '9007199254740991',
  '9007199254740992',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '18446744073709551615',
  '18446744073709551616',
  '999999999999999',
  '9999999999999999',
  '10000000000000000',
  '1'.repeat(5000),
  '0x1',
  '1e0',
  '1e3',
  '1.0',
  '1.',
  '.1',
  '+1',
  '-1',
  '1n',
  '1_0',
  '1,0',
  '%31',
  '1%30',
  '1%00',
  '%001',
  '%D9%A1',
  '%EF%BC%91',
  '%C2%B2',
  '%E2%85%A0',
  'NaN',
  'Infinity',
  'null',
  'undefined',
  'true',
  '__proto__',
  'constructor',
  'toString',
  '..',
  '.',
  '...',
  '%2e%2e',
  '..%2f..%2fetc%2fpasswd',
  '1;1',
  "1'--",
  '1%20or%201=1',
  '%27%20union%20select%201--',
  '$1',
  '*',
  '%25',
  '%2531',
  '~',
  '@1',
  '(1)',
  '1:1',
  'book',
  ':id',
];

/** What has broken programs: their quoting, their directions, their lengths, their guesses. */
const NAUGHTY: readonly string[] = [
  // Words and numbers that are texts
  'undefined',
  'undef',
  'null',
  'NULL',
  '(null)',
  'nil',
  'NIL',
  'true',
  'False',
  'None',
  '\\',
  '\\\\',
  '0',
  '1',
  '1.00',
  '$1.00',
  '1/2',
  '1E2',
  '-1',
  '1/0',
  '0/0',
  '0x0',
  '0xffffffff',
  '123456789012345678901234567890',
  'NaN',
  'Infinity',
  '-Infinity',
  'INF',
  '1,000.00',
  "1'000,00",
  '01000',
  '08',
  '1_000',
  '--1',
  '.',
  '..',
  ',',
  '...',
  '-',
  '--',
  '[]',
  '{}',
  '""',
  // Punctuation and escapes
  ",./;'[]-=",
  '<>?:"{}|_+',
  '!@#$%^&*()`~',
  '"',
  "'",
  '""',
  "''",
  `'"'`,
  `"'"'"''''"`,
  '\\u0000',
  '\\0',
  '\\x00',
  '%00',
  '\\n',
  '%0a%0d',
  '\\"',
  '\\u0022',
  // Spaces and control characters
  ' ',
  '  x  ',
  '\t',
  '\n',
  '\r',
  '\r\n',
  '\u000b',
  '\f',
  '\u001b[31mred\u001b[0m',
  '\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\u000e\u000f\u0010\u001a\u001b\u001c\u001f\u007f',
  '\u0080\u0085\u009f',
  '\u00a0\u1680\u2000\u2007\u200a\u202f\u205f\u3000',
  '\u00ad\u0600\u061c\u180e\u200b\u200c\u200d\u2060\ufeff',
  '\ufeffx',
  'x\ufeff',
  '\ufffe',
  '\uffff',
  '\ufdd0\ufdef\u{1fffe}\u{10ffff}',
  '\ufffd',
  // Unicode
  'Ω≈ç√∫˜µ≤≥÷',
  '田中さんにあげて下さい',
  '사회과학원 어학연구소',
  '𠜎𠜱𠝹𠱓',
  'Ⱥ Ⱦ ẞ ı İ',
  'ÅÅÅ',
  '\u00e9',
  'e\u0301',
  '\u212b\u00c5A\u030a',
  'ﬁ ﬃ ½ ²',
  '\u1e9b\u0323',
  '\u0958\u2126',
  '가\u1100\u1161',
  '😍',
  '👩🏽‍🚀',
  '👨‍👩‍👧‍👦',
  '🏳️‍🌈',
  '🇫🇷🇺🇸',
  '0️⃣ 1️⃣',
  '✋🏿',
  '123',
  '١٢٣',
  '𝔗𝔥𝔢 𝓺𝓾𝓲𝓬𝓴',
  '\u{e0001}\u{e0041}',
  'T\u0335\u0301o\u0336\u0302 i\u0334\u0310n\u0337\u030avoke',
  `Z${'\u0301\u0316\u0335'.repeat(500)}`,
  'ثم نفس سقطت',
  'בְּרֵאשִׁית',
  '\u202etest\u202e',
  '\u2066test\u2067',
  '\u2028x\u2029',
  'a\u0020\u20e3',
  'ﷺ',
  '﷽',
  'العربية abc עברית',
  'ก็็็็็็',
  // Markup and scripts
  '<script>alert(1)</script>',
  '&lt;b&gt; &amp; &#0;',
  '"><img src=x onerror=alert(1)>',
  'javascript:alert(1)',
  '<!--#exec cmd="ls"-->',
  '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]><x>&y;</x>',
  '</script><svg/onload=alert(1)>',
  '<![CDATA[x]]>',
  // Statements, formats, templates, commands, paths
  "'; drop table books; --",
  "1' or '1'='1",
  '1; select pg_sleep(10)',
  "\\'; select 1",
  '$$x$$',
  '$1',
  '?',
  ':title',
  '@title',
  "E'\\x00'",
  "x'00'",
  '%s%n%d%x',
  '%p %*.*s',
  '{0} {{7*7}} #{7*7} <%= 7*7 %>',
  '$HOME',
  '$(touch /tmp/x)',
  '`touch /tmp/x`',
  '| ls',
  '; ls',
  '&& ls',
  '../../../../etc/passwd',
  '..\\..\\x',
  '/dev/null',
  'CON',
  'C:\\x',
  'file:///etc/passwd',
  '() { :; }; echo',
  '=1+1',
  '@SUM(1)',
  '+1',
  '-1+1',
  '\\N',
  '\\.',
  '\\copy',
  '\\x41',
  '{"title":"x"}',
  ',{"id":1}',
  ']}',
  '__proto__',
  'constructor',
  // Long ones
  'x'.repeat(70_000),
  'é'.repeat(40_000),
  '📚'.repeat(20_000),
  '\n'.repeat(10_000),
  '"'.repeat(10_000),
  '\\'.repeat(10_000),
  '\u0001'.repeat(10_000),
];
