// The measure of the rules of the wire: of services that break one promise below HTTP, does the kit find out each? Each is
// the right one behind a proxy that changes bytes. wrong-services.test.ts has those that an HTTP server can be.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Service } from '../../conformance/service.ts';
import { WIRE } from '../../conformance/wire.ts';
import { LIMITS } from '../support/client.ts';
import { ENVIRONMENT, type RunningService, SECRET, SQLITE, startTestService } from '../support/service.ts';

interface Fault {
  /** @param text of the right service, one character for each byte. */
  give(text: string): string;
  /** Ends the connection to the client, when the right service has ended its own. */
  end(client: Socket): void;
}

const NO_FAULT: Fault = { give: (text) => text, end: (client) => client.end() };

/** Answers have another status. */
const status = (right: number, wrong: number): Fault => ({
  ...NO_FAULT,
  give: (text) => text.replaceAll(String(right), String(wrong)),
});

/** @param text of the same length, so that the answer is complete. */
const header = (line: RegExp, text: string): Fault => ({
  ...NO_FAULT,
  give: (answer) => answer.replaceAll(line, text),
});

const WRONG_WIRES: readonly (readonly [name: string, rule: string, fault: Fault])[] = [
  [
    'a refusal leaves its connection open',
    'requests that are not valid',
    header(/connection: close/gi, 'connection: open'),
  ],
  ['a truncated request gets 408', 'a truncated request', status(400, 408)],
  ['a second Host is ignored', 'a missing or second Host', status(400, 200)],
  ['CONNECT gets 405', 'CONNECT gets 400', status(400, 405)],
  ['a request with Upgrade gets 426', 'a request with Upgrade', status(200, 426)],
  ['segments are resolved', 'segments such as ..', status(404, 200)],
  [
    'an id of a request is replaced',
    'an answer has the id',
    header(/x-request-id: [^\r]*/gi, 'x-request-id: other'),
  ],
  ['1,001 header lines are read', '1,000 header lines', status(431, 404)],
  ['trailers of 16 KiB are read', 'trailers of 16 KiB', status(431, 401)],
  ['a login of any size is read', 'a login of 4 KiB', status(413, 401)],
  ['an announced body is read', 'an announced body', status(413, 201)],
  ['a token is not needed before the body is there', 'a request without a token', status(401, 201)],
  ['the size of a body is checked before its book', 'a PUT to a missing book', status(404, 413)],
  [
    'a refusal resets its connection',
    'a truncated request',
    // The kit, in the same process, reads the answer first.
    { ...NO_FAULT, end: (client) => setImmediate(setImmediate, () => client.resetAndDestroy()) },
  ],
];

describe('services that break one promise of the wire', () => {
  let right: RunningService;
  let proxy: Server;
  let fault = NO_FAULT;

  before(async () => {
    right = await startTestService(await SQLITE.freshUrl());
    proxy = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      const { give, end } = fault;
      const onward = connect({ host: '127.0.0.1', port: right.port, allowHalfOpen: true, noDelay: true });
      client.on('error', () => onward.destroy()).pipe(onward);
      client.on('close', () => onward.destroy());
      onward.on('error', () => client.destroy()).setEncoding('latin1');
      onward.on('data', (text: string) => client.write(give(text), 'latin1'));
      onward.on('end', () => end(client));
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
  });
  after(async () => {
    proxy?.close();
    await right?.stop();
  });

  async function check(name: string): Promise<void> {
    const rule = WIRE.find((one) => one.name.startsWith(name));
    assert.ok(rule !== undefined, name);
    const { AUTH_USERNAME: username, AUTH_PASSWORD: password } = ENVIRONMENT;
    const url = new URL(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    const service = new Service(url, { username, password, secret: SECRET }, LIMITS);
    const wrong = fault;
    fault = NO_FAULT;
    try {
      await service.logIn();
      fault = wrong;
      await rule.check(service);
    } finally {
      fault = NO_FAULT;
      service.close();
    }
  }

  for (const name of new Set(WRONG_WIRES.map(([, rule]) => rule))) {
    test(`nothing is broken: ${name}`, () => check(name));
  }

  for (const [name, rule, wrong] of WRONG_WIRES) {
    test(`${name}: found out`, async () => {
      fault = wrong;
      await assert.rejects(check(rule));
    });
  }
});
