// The service reads HTTP by itself. Node.js gets the same bytes, and a request behind them that shows where each found the end:
// what the service accepts, Node.js accepts, with the same method, target, headers and body. So a proxy in front, which reads
// requests as Node.js does or more strictly, sees the same ones. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { Chunks } from '../../src/http/chunks.ts';
import { readHead } from '../../src/http/head.ts';
import { anyRequests } from '../support/any-http.ts';
import { CASES, HEADER_LIMIT } from '../support/http-cases.ts';
import { type Outcome, readByNode, readByService } from '../support/http-readers.ts';
import { random } from '../support/random.ts';
import { scaled } from '../support/scale.ts';

const MARKER = 'GET /marker HTTP/1.1\r\nhost: marker\r\n\r\n';

const bytesOf = (text: string) => Buffer.from(text + MARKER, 'latin1');

const SIGN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]";
const EXTENSIONS = `(?:;${SIGN}+(?:=(?:${SIGN}+|"[^"\\\\\\x80-\\xff]*"))?)*`;
const HOST = "(?:[-\\w.~%!$&'()*+,;=]*|\\[[\\da-f:.]+\\])(?::[a-z\\d.]*)?";
const extensionsIn = (body: string) => (body.match(/(?<=^[\da-f]{1,9});.*$/gim) ?? []).join('');
const trailersIn = (body: string) => /(?<=^0\r\n)(?:.+\r\n)+\r\n/m.exec(body)?.[0] ?? '';

/** What Node.js accepts and the service refuses, or takes for the last request of its connection: in the head, or behind it. */
const ONLY_OURS: Readonly<
  Record<'head' | 'body', Readonly<Record<string, { test(text: string): boolean }>>>
> = {
  head: {
    'CR or LF alone before a request': /^(?:\n|\r(?!\n))/,
    'several spaces in a request line': /^\s*[A-Z-]+(?: {2,}\S+ +| +\S+ {2,})HTTP\/1/,
    'HTTP/0.9 or 2.0': /^\s*[A-Z-]+ +\S+ *(?:HTTP\/(?:0\.9|2\.0))?(?:[\r\n]|$)/,
    'RTSP or ICE': /^\s*[A-Z-]+ +\S+ +(?:RTSP|ICE)\//,
    'an asterisk and more': /^\s*[A-Z-]+ +\*\S+ +HTTP\//,
    'a fragment': /^\s*[A-Z-]+ +(?:\/|https?:\/\/[-\w.~%:[\]]+[/?])\S*#\S* +HTTP\//i,
    'another URL': /^\s*[A-Z-]+ +(?!https?:\/\/[-\w.~%:[\]]+(?:[/?]\S*)? )[a-z]+:\/\//i,
    'no Host in HTTP/1.1': / HTTP\/1\.1(?![\s\S]*^host:)/im,
    'two Hosts': /^host:[\s\S]*^host:/im,
    'an invalid Host': new RegExp(`^host:[ \\t]*(?![ \\t])(?!${HOST}[ \\t]*$)`, 'im'),
    'over 4 KB of blanks': /[ \t]{4001}/,
    'a length of over 20 digits': /^content-length:[ \t]*\d{21,}[ \t]*$/im,
    'a coding before chunked': /^transfer-encoding:(?:.*,|[\s\S]*^transfer-encoding:)[ \t]*chunked *$/im,
    'a tab before chunked': /^transfer-encoding: *\t[ \t]*chunked[ \t]*$/im,
    'chunks in HTTP/1.0': / HTTP\/1\.0$[\s\S]*^transfer-encoding:/im,
    Upgrade: /^upgrade:/im,
    'Proxy-Connection in HTTP/1.0': / HTTP\/1\.0$[\s\S]*^proxy-connection:.*keep-alive/im,
    'close beside keep-alive in HTTP/1.0':
      / HTTP\/1\.0$(?=[\s\S]*^connection:.*close)[\s\S]*^connection:.*keep-alive/im,
  },
  body: {
    'a chunk size of over 13 digits': /^[\da-f]{14,}(?:;|$)/im,
    'an extension against the grammar': new RegExp(`^[\\da-f]+(?=;)(?!${EXTENSIONS}$)`, 'im'),
    'over 16 KiB of extensions': { test: (body) => extensionsIn(body).length > 16_384 },
    'a trailer about the connection': /^0+(?:;.*)?\r\n(?:.+\r\n)*(?:host|connection|upgrade|expect):/im,
    'over HEADER_LIMIT of trailers': { test: (body) => trailersIn(body).length > HEADER_LIMIT },
  },
};

/** @param input begins with a request. */
function classesOf(input: string): string[] {
  const text = input.replace(/^(?:\r\n)+/, '');
  const end = `${text}\r\n\r\n`.indexOf('\r\n\r\n');
  const parts = { head: text.slice(0, end), body: text.slice(end) };
  return Object.entries(ONLY_OURS).flatMap(([part, classes]) =>
    Object.keys(classes).filter((name) => classes[name]?.test(parts[part as keyof typeof parts])),
  );
}

interface Comparison {
  /** Those of the first request that only Node.js accepts, if it accepts one. */
  readonly classes: readonly string[] | undefined;
  readonly isAcceptedByNode: boolean;
  /** Whether both find the end of all requests. */
  readonly isSame: boolean;
}

/** @throws unless Node.js accepts what the service accepts, as the same. */
async function compare(text: string): Promise<Comparison> {
  const bytes = bytesOf(text);
  const [{ requests, refusal }, nodes] = await Promise.all([readByService([bytes]), readByNode(bytes)]);
  // For this one, which is no header of HTTP, Node.js ends connections.
  const most = /^proxy-connection:/im.test(text) ? nodes.requests.length : requests.length;
  assert.deepEqual(requests.slice(0, most), nodes.requests.slice(0, requests.length));
  const read = refusal === undefined ? requests.length - 1 : requests.length;
  const isStricter = requests.length < nodes.requests.length;
  return {
    classes: isStricter ? classesOf(await behind(read, bytes)) : undefined,
    isAcceptedByNode: nodes.requests.length > 0 && nodes.refusal === undefined,
    isSame: requests.at(-1)?.target === '/marker',
  };
}

/** @returns what follows so many requests. */
async function behind(count: number, bytes: Buffer): Promise<string> {
  let [start, end] = [0, bytes.length];
  while (start < end) {
    const middle = Math.floor((start + end) / 2);
    const { requests } = await readByService([bytes.subarray(0, middle)]);
    if (requests.length < count) start = middle + 1;
    else end = middle;
  }
  return bytes.toString('latin1', end);
}

describe('requests as the service and Node.js read them', () => {
  test('rule 20: what readers have read differently is refused, or means the same', async () => {
    const found = new Set<string>();
    for (const [name, text] of CASES) {
      const { classes, isSame } = await compare(text).catch((cause) =>
        Promise.reject(new Error(name, { cause })),
      );
      if (isSame) assert.deepEqual(classesOf(text), [], `${name} is read`);
      if (classes === undefined) continue;
      assert.equal(classes.length, 1, `${name}: ${classes}`);
      found.add(String(classes));
    }
    assert.deepEqual(found, new Set(Object.values(ONLY_OURS).flatMap(Object.keys)), 'each class has a case');
    assert.equal(new Set(CASES.map(([name]) => name)).size, CASES.length, 'names are unique');
  });

  test('rule 20: random requests are refused, or mean the same', async () => {
    let [accepted, all] = [0, 0];
    const property = fc.asyncProperty(anyRequests, async (text) => {
      const { classes, isAcceptedByNode } = await compare(text);
      assert.notDeepEqual(classes, [], 'only Node.js accepts it');
      all += 1;
      if (isAcceptedByNode) accepted += 1;
    });
    await fc.assert(property, { numRuns: scaled(48_000) });
    assert.ok(accepted > all / 2, `Node.js accepts ${accepted} of ${all}`); // two thirds, as a rule
  });
});

describe('requests in packets', () => {
  for (const [when, isEarly] of [
    ['is whole', false],
    ['begins', true],
  ] as const) {
    test(`rule 20: however requests are cut, they mean the same to a service that answers each once it ${when}`, async () => {
      for (const [name, text] of CASES) {
        if (isEarly && !/chunked|length/i.test(text)) continue; // no body
        const bytes = bytesOf(text);
        const whole = await readByService([bytes], isEarly);
        const check = async (cuts: readonly number[]) => {
          const all = [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index]));
          const pieces = all.filter(({ length }) => length > 0);
          const outcome = await readByService(pieces, isEarly);
          if (isDeepStrictEqual(outcome, whole)) return;
          assert.ok(isEarly, `${name}, cut at ${cuts}`);
          await expectLate(outcome, whole, pieces, `${name}, cut at ${cuts}`);
        };
        const cuts = cutsOf(bytes.length, isEarly);
        while (cuts.length > 0) await Promise.all(cuts.splice(-500).map(check));
      }
    });
  }
});

test('rule 22: what does not end is refused', () => {
  const [at, most] = [HEADER_LIMIT, HEADER_LIMIT + 4000];
  for (const [start, more, least, longest, status] of [
    ['GET /', 'x', at, most, 431],
    ['GET / HTTP/1.1\r\nX:', 'y', at, most, 431],
    ['GET / HTTP/1.1\r\n', 'a:\r\n', at, most, 431],
    ['5;', 'a', 16_384, 16_400, 400],
    ['0\r\nX:', 'y', at, at + 8, 431],
  ] as const) {
    const read = (length: number) => {
      const bytes = Buffer.from(start.padEnd(length, more));
      if (start.startsWith('GET')) return readHead(bytes, HEADER_LIMIT);
      const chunks = new Chunks(HEADER_LIMIT);
      chunks.read(bytes, () => {});
      return chunks.status;
    };
    assert.deepEqual([read(least), read(longest)], [undefined, status], start);
  }
});

/** All places for one cut (before a push, not if it takes long), and random pairs of places. */
function cutsOf(length: number, isEarly: boolean): number[][] {
  const isLong = length > 3000;
  const step = isLong || isEarly ? Math.ceil(length / scaled(length)) : 1;
  const isNearEnd = (at: number) => isLong && Math.min(at, length - at) < 200;
  const places = Array.from({ length: length - 1 }, (_, index) => index + 1);
  const any = () => 1 + Math.floor(random() * (length - 1));
  const pairs = places
    .slice(0, scaled(Math.min(length, 800)))
    .map(() => [any(), any()].toSorted((a, b) => a - b));
  return [...places.filter((at) => at % step === 0 || isNearEnd(at)).map((at) => [at]), ...pairs];
}

/**
 * The one difference that is meant: a request whose chunks are wrong is refused, without an effect, if they came with its head. Else
 * it may have an answer, which is then the last one of its connection.
 */
async function expectLate(
  outcome: Outcome,
  whole: Outcome,
  pieces: readonly Buffer[],
  what: string,
): Promise<void> {
  assert.deepEqual([whole.refusal !== undefined, outcome.refusal], [true, undefined], what);
  assert.equal(outcome.requests.length, whole.requests.length + 1, what);
  const before = pieces.map((_, index) => readByService(pieces.slice(0, index), true));
  const outcomes = await Promise.all(before);
  assert.ok(
    outcomes.some((one) => isDeepStrictEqual(one, outcome)),
    what,
  );
}
