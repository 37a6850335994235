// The room for bodies, on requests that the test stands in for: sockets hold bytes by themselves. Titles name the rules of
// docs/contract.md.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  BodyIncomplete,
  BodyRoom,
  BodyTooLarge,
  bodyPieces,
  NoRoomForBody,
  readBody,
} from '../../src/http/body.ts';
import { settled } from '../support/virtual-time.ts';

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * 1024;

describe('the room for bodies', () => {
  /** Begins to read a body that arrives in two pieces, of which the first takes all its room. */
  function begin(length: number) {
    const request = new EventEmitter() as IncomingMessage;
    request.headers = { 'content-length': String(length) };
    const body = readBody(request, MEBIBYTE);
    request.emit('data', Buffer.alloc(length / 2 + 1));
    return {
      body,
      end() {
        request.emit('data', Buffer.alloc(length / 2 - 1));
        request.complete = true;
        request.emit('end');
        request.emit('close');
      },
    };
  }

  for (const [count, length, name] of [
    [128, MEBIBYTE, '128 bodies of 1 MiB'],
    [2048, 64 * KIBIBYTE, '2,048 bodies of 64 KiB'],
  ] as const) {
    test(`rule 22: there is room for ${name}, others find none until it is released, and bodies of the other size have their own`, async () => {
      const begun = Array.from({ length: count }, () => begin(length));
      await assert.rejects(Promise.race([begin(length).body, settled()]), NoRoomForBody);
      const other = begin(length === MEBIBYTE ? 64 * KIBIBYTE : MEBIBYTE);
      other.end();
      await other.body;
      begun.pop()?.end();
      begun.push(begin(length));
      for (const { end } of begun) end();
      for (const { body } of begun) assert.equal((await body).length, length);
    });
  }

  test('rule 22: the pieces of a body are not kept', async () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const { request, body } = beginChunked();
    const pieces = Array.from({ length: 100 }, () => {
      const piece = Buffer.from(' ');
      request.emit('data', piece);
      return new WeakRef(piece);
    });
    await settled(); // until then, each piece that was made is kept
    collect();
    assert.ok(pieces.every((piece) => piece.deref() === undefined));
    request.emit('end');
    assert.equal((await body).toString(), ' '.repeat(100));
  });

  test('rule 11: a body whose client leaves before the end is read is not whole, even if all of it has arrived', async () => {
    const request = new IncomingMessage(new Duplex({ read() {} }) as Socket);
    request.headers = { 'content-length': '4' };
    const pieces = bodyPieces(request, new BodyRoom(MEBIBYTE));
    request.push('[{}]');
    assert.equal(String((await pieces.next()).value), '[{}]');
    request.complete = true;
    request.destroy(new Error('aborted'));
    await assert.rejects(pieces.next(), BodyIncomplete);
  });

  test('rule 22: what arrives after the limit is dropped', async () => {
    const { request, body } = beginChunked();
    request.emit('data', Buffer.alloc(MEBIBYTE + 1));
    await assert.rejects(Promise.race([body, settled()]), BodyTooLarge);
    assert.equal(request.listenerCount('data'), 0);
  });
});

function beginChunked() {
  const request = new EventEmitter() as IncomingMessage;
  request.headers = { 'transfer-encoding': 'chunked' };
  return { request, body: readBody(request, MEBIBYTE) };
}
