// The room for bodies, on requests that the test stands in for: sockets hold bytes by themselves. Titles name the rules of
// docs/contract.md.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createBooks } from '../../src/api/books.ts';
import {
  BodyIncomplete,
  type BodyTaker,
  BodyTooLarge,
  NoRoomForBody,
  parseBody,
  readBody,
} from '../../src/http/body.ts';
import { exchangeOf, partsWith, requestWith } from '../fuzz/bodies.ts';
import { settled } from '../support/virtual-time.ts';

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * 1024;

describe('the room for bodies', () => {
  /** Begins to read a body that arrives in two pieces, of which the first takes all its room. */
  function begin(length: number) {
    const { taker, body } = beginToRead(length);
    taker.take(Buffer.alloc(length / 2 + 1));
    return {
      body,
      end() {
        taker.take(Buffer.alloc(length / 2 - 1));
        taker.end(true);
      },
    };
  }

  test('rule 22: there is room for 128 bodies of 1 MiB, and for another one once one is released; tiny ones need none', async () => {
    const begun = Array.from({ length: 128 }, () => begin(MEBIBYTE));
    await assert.rejects(Promise.race([begin(MEBIBYTE).body, settled()]), NoRoomForBody);
    await assert.rejects(Promise.race([begin(10 * KIBIBYTE).body, settled()]), NoRoomForBody);
    const tiny = begin(4 * KIBIBYTE);
    tiny.end();
    assert.equal((await tiny.body).length, 4 * KIBIBYTE);
    begun.pop()?.end();
    begun.push(begin(MEBIBYTE));
    for (const { end } of begun) end();
    for (const { body } of begun) assert.equal((await body).length, MEBIBYTE);
  });

  test('rule 22: a body of POST /books takes four times its length while it arrives and until it is answered', async () => {
    const stored: PromiseWithResolvers<object>[] = [];
    const createAll = () => {
      stored.push(Promise.withResolvers());
      return stored.at(-1)?.promise;
    };
    const config = { bodyLimit: MEBIBYTE, bulkLimit: 64 * MEBIBYTE };
    const post = async (length: number) => {
      const body = Buffer.from(`[${' '.repeat(length - 2)}]`);
      return createBooks(
        exchangeOf(requestWith({}, length, [body.subarray(0, 1), body.subarray(1)])),
        partsWith({ catalogue: { createAll }, config }),
      );
    };
    const answers = [post(16 * MEBIBYTE), post(16 * MEBIBYTE)];
    await settled();
    await assert.rejects(post(2), NoRoomForBody);
    for (const { resolve } of stored) resolve({ ids: [], isReplay: false });
    for (const answer of answers) assert.equal((await answer).status, 201);
    const alone = post(33 * MEBIBYTE);
    await settled();
    await assert.rejects(post(2), NoRoomForBody);
    stored.at(-1)?.resolve({ ids: [], isReplay: false });
    assert.equal((await alone).status, 201);
  });

  test('rule 22: a body has at most 250,000 commas and opening brackets outside its texts, each of which is looked at once', () => {
    const read = (body: string) => parseBody(Buffer.from(body));
    const start = `[{"x":[${'[],{},'.repeat(62_498)}[],[],0,0`;
    assert.equal((read(`${start}]}]`) as unknown[]).length, 1);
    assert.throws(() => read(`${start},0]}]`), BodyTooLarge);
    assert.throws(() => read('['.repeat(250_001)), BodyTooLarge);
    assert.throws(() => read('{"a":'.repeat(250_001)), BodyTooLarge);
    const text = String.raw`\",[{\\`.repeat(100_000);
    assert.equal((read(`[{"x":"${text}"}]`) as unknown[]).length, 1);
    const deep = `[0.1e-400,${'['.repeat(200_000)}${']'.repeat(200_001)}`;
    assert.notEqual((read(deep) as unknown[])[0], 0); // a reviver would run out of stack
  });

  test('rule 22: the pieces of a body are not kept', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const { taker, body } = beginToRead(undefined);
    const pieces = Array.from({ length: 100 }, () => {
      const piece = Buffer.from(' ');
      taker.take(piece);
      return new WeakRef(piece);
    });
    await settled(); // until then, each piece that was made is kept
    collect();
    assert.ok(pieces.every((piece) => piece.deref() === undefined));
    taker.end(true);
    assert.equal((await body).toString(), ' '.repeat(100));
  });

  test('rule 11: a body whose client leaves before the end is read is not whole, even if all of it has arrived', async () => {
    const { taker, body } = beginToRead(undefined);
    taker.take(Buffer.from('[{}]'));
    taker.end(false);
    await assert.rejects(Promise.race([body, settled()]), BodyIncomplete);
  });

  test('rule 22: what arrives after the limit is dropped', async () => {
    const { taker, body } = beginToRead(undefined);
    taker.take(Buffer.alloc(MEBIBYTE + 1));
    await assert.rejects(Promise.race([body, settled()]), BodyTooLarge);
    taker.take(Buffer.alloc(10 * KIBIBYTE));
    const begun = Array.from({ length: 128 }, () => begin(MEBIBYTE));
    for (const { end } of begun) end();
    for (const { body } of begun) assert.equal((await body).length, MEBIBYTE);
    taker.end(true);
  });
});

/** @param bodyLength undefined if it comes in chunks. */
function beginToRead(bodyLength: number | undefined) {
  let taker: BodyTaker = { take() {}, end() {} };
  const takeBody = (one: BodyTaker) => {
    taker = one;
  };
  const body = readBody({ bodyLength, takeBody }, MEBIBYTE);
  return { taker, body };
}
