// Owns: the siege as a command. Shows with figures what the tests show with states: that the service stays fast for
// honest clients, and small, under attack and overload.

import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { applyLoad, CONNECTIONS } from '../bench/load.ts';
import {
  type Operation,
  REFUSED_OPERATIONS,
  requestsOf,
  STANDING_BOOKS,
  TOKEN,
} from '../bench/operations.ts';
import { type Measured, startService } from '../bench/processes.ts';
import { type BenchStore, openPostgresBench, openSqliteBench } from '../bench/stores.ts';
import {
  almostWholeBodies,
  drippingReaders,
  endlessBodies,
  silent,
  slowBodies,
  slowHeaders,
  stalledReaders,
  stalledReadersOf,
} from './attackers.ts';

const HELP = `Usage: npm run siege -- [options]

Attacks and overloads a service that it starts itself, on both stores, and prints the results. Exits with code 1 if a
bound was broken.

  --seconds <n>     seconds of each measurement (5)
  --attackers <n>   connections of each kind of hostile client (1300)
  --addresses <n>   addresses that guess the password (1000000)
  --help            print this
`;

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    attackers: { type: 'string', default: '1300' },
    addresses: { type: 'string', default: '1000000' },
    help: { type: 'boolean', default: false },
  },
});

/** Books in a list that exceeds every buffer on its way. */
const LONG_LIST = 100_000;

/** Settings with which every path that needs no token can be called. */
const OPEN_TO_ALL = { TRUST_PROXY: '127.0.0.1', CORS_ORIGINS: 'https://books.test' };

/** As many short requests as Node reads at once, 64 KiB. */
const MANY_CALLS = call('GET', '/').repeat(1800);

/** A login that fails. */
const GUESS = '{"username":"bench","password":"guess"}';

/** Addresses of failed logins, one login each. */
const GUESSING_ADDRESSES = 100_000;

/** One figure and its bound. */
interface Finding {
  readonly siege: string;
  readonly store: string;
  readonly figure: string;
  readonly bound: string;
  readonly holds: boolean;
}

const findings: Finding[] = [];

async function siege(): Promise<void> {
  for (const [name, open] of [
    ['SQLite', openSqliteBench],
    ['PostgreSQL', openPostgresBench],
  ] as const) {
    await withService(name, open, {}, overload);
    await withService(name, open, {}, hostileClients, LONG_LIST);
    await withService(name, open, {}, heavyCalls, LONG_LIST);
    await withService(name, open, {}, stalledLists, LONG_LIST);
    await withService(name, open, {}, longSearches, LONG_LIST);
    await withService(name, open, OPEN_TO_ALL, callsWithoutToken);
  }
  await withService('SQLite', openSqliteBench, { TRUST_PROXY: '127.0.0.1' }, guessing);
  progress('');
  for (const { siege, store, figure, bound, holds } of findings) {
    console.log(`${holds ? 'holds ' : 'BROKEN'}  ${siege}, ${store}: ${figure} (${bound})`);
  }
  if (findings.some(({ holds }) => !holds)) process.exitCode = 1;
}

/** Ten times the connections with which a service reaches its best throughput. */
async function overload(store: string, service: Measured): Promise<void> {
  const seconds = Number(options.seconds);
  for (const operation of ['read', 'create', 'mix'] as const satisfies readonly Operation[]) {
    const requests = requestsOf(operation, []);
    const measure = async (connections: number) => {
      progress(`${store}: ${operation} on ${connections} connections`);
      const {
        requests: answers,
        seconds: time,
        p99,
        refused,
      } = await applyLoad({
        port: service.port,
        requests,
        seconds,
        connections,
      });
      return { rate: (answers - refused) / time, p99, refused };
    };
    await measure(CONNECTIONS); // warm
    const best = await measure(CONNECTIONS);
    const ten = await measure(10 * CONNECTIONS);
    const ratio = ten.rate / best.rate;
    record(
      `ten times the load, ${operation}`,
      store,
      `${ratio.toFixed(2)} of the best throughput, p99 ${ten.p99.toFixed(0)} ms instead of ${best.p99.toFixed(0)} ms, ${ten.refused} refused`,
      'at least 0.80',
      ratio >= 0.8,
    );
  }
}

/** Honest requests beside very many hostile clients of each kind. */
async function hostileClients(store: string, service: Measured): Promise<void> {
  const count = Number(options.attackers);
  const target = { port: service.port, url: `http://127.0.0.1:${service.port}` };
  const attacks = {
    'silent connections': () => silent(target, count),
    'slow headers': () => slowHeaders(target, count),
    'slow bodies': () => slowBodies(target, count),
    'bodies that lack a byte': () => almostWholeBodies(target, count),
    'bodies of short chunks': () => endlessBodies(target, count, '1\r\na\r\n'.repeat(700)),
    'bodies of ends of lines': () => endlessBodies(target, count, `1000\r\n${'\r\n\r\n'.repeat(1024)}\r\n`),
    'stalled readers of the list': () => stalledReaders(target, count, TOKEN),
    'dripping readers of the list': () => drippingReaders(target, count, TOKEN),
    'readers of no refusal': () => stalledReadersOf(target, count, MANY_CALLS),
    'readers of no file of the page': () => stalledReadersOf({ port: pagePort(service) }, count, MANY_CALLS),
  };
  await honestP99(service); // warm
  const resident = service.residentBytes();
  progress(`${store}: honest requests alone`);
  const alone = await honestP99(service);
  for (const [kind, attack] of Object.entries(attacks)) {
    progress(`${store}: ${count} ${kind}`);
    const running = attack();
    await running.begun;
    const p99 = await honestP99(service);
    const growth = (service.residentBytes() - resident) / 1024 / 1024;
    running.stop();
    record(
      `${count} ${kind}`,
      store,
      `honest p99 ${p99.toFixed(1)} ms (alone ${alone.toFixed(1)}), ${growth.toFixed(0)} MiB more`,
      'at most 100 ms, 384 MiB',
      p99 <= 100 && growth <= 384,
    );
  }
}

/** Lists beside stalled readers of it, one or two more of them than lists can be open. */
async function stalledLists(store: string, service: Measured): Promise<void> {
  const count = store === 'SQLite' ? 34 : 9;
  progress(`${store}: lists beside ${count} stalled readers`);
  const attack = stalledReaders(service, count, TOKEN);
  await attack.begun;
  const lists: { milliseconds: number }[] = [];
  for (let list = 0; list < 10; list += 1) {
    await pause(1000);
    const began = performance.now();
    while ((await send(service.port, 'GET', '/books', '').catch(() => 503)) !== 200) await pause(1000);
    lists.push({ milliseconds: performance.now() - began });
  }
  attack.stop();
  record(
    `${count} stalled readers of the list`,
    store,
    `the slowest of ${lists.length} lists of others after ${slowest(lists)} ms`,
    'at most 15000 ms',
    slowest(lists) <= 15_000,
  );
}

/** Calls that take the store long: none is refused that could be carried out, and a search without end ends. */
async function heavyCalls(store: string, service: Measured): Promise<void> {
  progress(`${store}: books of 1 MB`);
  const title = JSON.stringify({ title: 'x'.repeat(1_000_000) });
  const changes = await inParallel(24, Number(options.seconds), (client) =>
    send(service.port, 'PUT', `/book/${client + 2}`, title),
  );
  const refused = changes.filter(({ status }) => status === 503).length;
  record(
    '24 clients that store books of 1 MB',
    store,
    `${refused} of ${changes.length} refused, the slowest answer after ${slowest(changes)} ms`,
    'at most 1 %',
    refused * 100 <= changes.length,
  );

  progress(`${store}: readers of no book of 1 MB`);
  const largeBook = call('GET', '/book/2', [`Authorization: ${TOKEN}`]);
  const attack = stalledReadersOf(service, 60, largeBook.repeat(31));
  const beside = await honestTimes(service);
  attack.stop();
  record(
    '60 connections with 31 calls for a book of 1 MB each, which read no answer',
    store,
    `the slowest honest answer after ${beside.at(-1)?.toFixed(0)} ms`,
    'at most 2000 ms',
    (beside.at(-1) as number) <= 2000,
  );

  progress(`${store}: searches for many beginnings of words`);
  const letters = encodeURIComponent([...'abcdefghijklmnopqrstuvwxyz0123456789'].join(' '));
  const [searches, p99] = await Promise.all([
    inParallel(8, Number(options.seconds), () => send(service.port, 'GET', `/books?q=${letters}`, '')),
    honestP99(service),
  ]);
  record(
    '8 clients that search for 36 beginnings of words',
    store,
    `honest p99 ${p99.toFixed(1)} ms, the slowest answer after ${slowest(searches)} ms`,
    'at most 100 ms, 5000 ms',
    p99 <= 100 && slowest(searches) <= 5000,
  );
}

/** Short searches beside clients that repeat a long one, which sorts all books by texts. */
async function longSearches(store: string, { port }: Measured): Promise<void> {
  progress(`${store}: long searches`);
  const search = (query: string) => send(port, 'GET', `/books?${query}`, '');
  const isIndexed = async () => {
    const headers = { authorization: TOKEN };
    const answer = await fetch(`http://127.0.0.1:${port}/books?limit=1`, { headers });
    return !answer.headers.has('x-unindexed-books');
  };
  while (!(await isIndexed())) await pause(100);
  const [long, short] = await Promise.all([
    inParallel(4, Number(options.seconds), () => search(`sort=author,-title,-year&offset=${LONG_LIST}`)),
    inParallel(1, Number(options.seconds), () => search('sort=title&limit=20')),
  ]);
  const refused = short.filter(({ status }) => status !== 200).length;
  record(
    '4 clients that repeat a long search',
    store,
    `${refused} of ${short.length} short ones refused, the slowest answer after ${slowest(short)} ms; long ones ${slowest(long)} ms`,
    'none, at most 500 ms, 5000 ms',
    refused === 0 && slowest(short) <= 500 && slowest(long) <= 5000,
  );
}

/** Repeats a call on several connections for some seconds. */
async function inParallel(clients: number, seconds: number, call: (client: number) => Promise<number>) {
  const answers: { status: number; milliseconds: number }[] = [];
  const end = performance.now() + seconds * 1000;
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() < end) {
        const began = performance.now();
        const status = await call(client);
        answers.push({ status, milliseconds: performance.now() - began });
      }
    }),
  );
  return answers;
}

function slowest(answers: readonly { milliseconds: number }[]): number {
  return Math.round(answers.reduce((most, { milliseconds }) => Math.max(most, milliseconds), 0));
}

/**
 * Calls that need no token, each kind on many connections as fast as it is answered: the processor time that one costs, and
 * honest requests meanwhile.
 */
async function callsWithoutToken(store: string, service: Measured): Promise<void> {
  await honestP99(service); // warm
  const alone = await honestP99(service);
  const measure = async (kind: string, port: number, requests: readonly string[]) => {
    progress(`${store}: ${kind}`);
    const before = service.cpuSeconds();
    const load = { port, requests, seconds: Number(options.seconds) };
    const [{ requests: answers }, p99] = await Promise.all([applyLoad(load, true), honestP99(service)]);
    return { cost: (service.cpuSeconds() - before) / answers, p99 };
  };
  const read = await measure('read', service.port, requestsOf('read', []));
  const kinds: Record<string, readonly string[]> = {
    ...Object.fromEntries(REFUSED_OPERATIONS.map((operation) => [operation, requestsOf(operation, [])])),
    'unknown method': [call('PATCH', '/book/1')],
    preflight: [
      call('OPTIONS', '/book/1', ['Origin: https://books.test', 'Access-Control-Request-Method: PUT']),
    ],
    'another host': [call('GET', '/books').replace('127.0.0.1', 'books.test')],
    'upgrade to another protocol': [call('GET', '/books', ['Connection: upgrade', 'Upgrade: h2c'])],
    'connection of one call': [call('GET', '/books', ['Connection: close'])],
    'call that cannot be read': ['GET\r\n\r\n'],
    'headers that are too long': [call('GET', '/books', [`X: ${'x'.repeat(17 * 1024)}`])],
    'headers of 990 lines': [call('GET', '/books', Array(990).fill('X: y'))],
    'body of 64 KiB without a token': [call('POST', '/books', [], ' '.repeat(64 * 1024))],
    'login that is no JSON': [call('POST', '/token', [], '['.repeat(4096))],
    'login that is too long': [call('POST', '/token', [], ' '.repeat(4097))],
    'wrong logins from one address': [call('POST', '/token', [], GUESS)],
    'wrong logins from very many addresses': Array.from({ length: GUESSING_ADDRESSES }, (_, index) =>
      call('POST', '/token', [`X-Forwarded-For: ${addressOf(index)}`], GUESS),
    ),
  };
  const ofPage = { 'first file of the page': [call('GET', '/')], 'its login': [call('GET', '/login.json')] };
  const paths = ['/livez', '/readyz', '/metrics', '/openapi.json', '/docs/'];
  const ofOperators = Object.fromEntries(paths.map((path) => [path, [call('GET', path)]]));
  for (const [port, bound, calls] of [
    [service.port, 15, kinds],
    [pagePort(service), 15, ofPage],
    [operationsPort(service), 75, ofOperators], // which other machines reach only if the operator says so
  ] as const) {
    for (const [kind, requests] of Object.entries(calls)) {
      const { cost, p99 } = await measure(kind, port, requests);
      const ratio = cost / read.cost;
      record(
        `calls without a token, ${kind}`,
        store,
        `${ratio.toFixed(1)} times the processor time of a read, honest p99 ${p99.toFixed(1)} ms (alone ${alone.toFixed(1)})`,
        `at most ${bound} times, 500 ms`,
        ratio <= bound && p99 <= 500,
      );
    }
  }
}

/** A whole request without a token, as it goes over the wire. */
function call(method: string, path: string, headers: readonly string[] = [], body = ''): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...headers];
  if (body !== '') lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** By default, the operations are on the next port, and the page on the one after that. */
const operationsPort = ({ port }: Measured) => port + 1;
const pagePort = ({ port }: Measured) => port + 2;

/** A different address for each number below 2 to the 24th. */
function addressOf(index: number): string {
  return `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
}

/** The 99th percentile of honest reads and creations in milliseconds. */
async function honestP99(service: Measured): Promise<number> {
  const times = await honestTimes(service);
  return times[Math.floor(times.length * 0.99)] as number;
}

/** How long honest reads and creations take, in milliseconds, the slowest last, at some hundred requests a second. */
async function honestTimes({ port }: Measured): Promise<readonly number[]> {
  const times: number[] = [];
  const end = performance.now() + Number(options.seconds) * 1000;
  await Promise.all(
    Array.from({ length: 4 }, async (_, client) => {
      while (performance.now() < end) {
        const isRead = client % 2 === 0;
        const began = performance.now();
        const status = await send(
          port,
          isRead ? 'GET' : 'POST',
          isRead ? '/book/1' : '/book',
          isRead ? '' : '{}',
        );
        times.push(performance.now() - began);
        if (status >= 300) throw new Error(`an honest request was answered with ${status}`);
        await pause(5);
      }
    }),
  );
  return times.sort((one, other) => one - other);
}

/** Brute force against the password from one address and from very many, and by measuring the time of answers. */
async function guessing(store: string, service: Measured): Promise<void> {
  const began = performance.now();
  let judged = 0;
  const seconds = Number(options.seconds) * 2;
  progress(`${store}: guessing from one address`);
  await Promise.all(
    Array.from({ length: 100 }, async () => {
      while (performance.now() - began < seconds * 1000) {
        if ((await logIn(service, '192.0.2.1', 'bench', 'guess')).status === 401) judged += 1;
      }
    }),
  );
  const lasted = (performance.now() - began) / 1000;
  const free = 10;
  record(
    'guesses from one address on 100 connections',
    store,
    `${judged} checked in ${lasted.toFixed(0)} s, ${free} of them without delay`,
    'one a second',
    judged <= free + lasted + 1,
  );

  progress(`${store}: guessing from the networks of one IPv6 /48`);
  const people = '2001:db8:1::7'; // also in that network
  await logIn(service, people, 'bench', 'bench');
  const guesses: number[] = [];
  const network = Array.from({ length: 3200 }, (_, index) => `2001:db8:1:${(index * 20).toString(16)}::1`);
  const guess = async () => {
    for (let address = network.pop(); address !== undefined; address = network.pop()) {
      const { status, milliseconds } = await logIn(service, address, 'bench', 'guess');
      if (status === 401 && milliseconds < 900) guesses.push(milliseconds);
    }
  };
  const rightLogins = inParallel(5, 1, async () => {
    await pause(100);
    return (await logIn(service, people, 'bench', 'bench')).status;
  });
  await Promise.all(Array.from({ length: 100 }, guess));
  const right = await rightLogins;
  record(
    '3,200 guesses from the networks of one IPv6 /48',
    store,
    `${guesses.length} checked without delay; the slowest right login of five people there after ${slowest(right)} ms, ${right.filter(({ status }) => status !== 200).length} of ${right.length} refused`,
    'at most 1000, 1000 ms, none',
    guesses.length <= 1000 && slowest(right) <= 1000 && right.every(({ status }) => status === 200),
  );

  // Each kind of wrong login in turn, so that other work of the machine affects all of them alike.
  progress(`${store}: the time of wrong names and wrong passwords`);
  const kinds = {
    'wrong password': ['bench', 'guess'],
    'wrong name': ['nobody', 'bench'],
    'long password': ['bench', 'x'.repeat(1000)],
  } as const;
  const times = new Map<string, number[]>(Object.keys(kinds).map((kind) => [kind, []]));
  // Three failures of a new address, 10,000 of all, are answered at once (rule 29).
  for (let round = 0; round < 3000; round += 1) {
    for (const [kind, [username, password]] of Object.entries(kinds)) {
      const { milliseconds } = await logIn(service, `10.1.${round >> 8}.${round & 255}`, username, password);
      times.get(kind)?.push(milliseconds);
    }
  }
  const [password, name, long] = [...times.values()].map(median) as [number, number, number];
  record(
    'a wrong name against a wrong password',
    store,
    `${(name / password).toFixed(3)} of its median time; a password of 1,000 characters ${(long / password).toFixed(3)}`,
    'within 5 %',
    Math.abs(name / password - 1) < 0.05,
  );

  const before = service.residentBytes();
  const addresses = Number(options.addresses);
  let next = 0;
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (next < addresses) {
        next += 1;
        await logIn(service, addressOf(next), 'bench', 'guess');
        if (next % 10_000 === 0) progress(`${store}: guessing from ${next} addresses`);
      }
    }),
  );
  const growth = (service.residentBytes() - before) / 1024 / 1024;
  record(
    `guesses from ${addresses} addresses`,
    store,
    `${growth.toFixed(0)} MiB more`,
    'at most 64 MiB',
    growth <= 64,
  );
}

/** Logs in through a trusted proxy that names this address. */
async function logIn(
  { port }: Measured,
  address: string,
  username: string,
  password: string,
): Promise<{ status: number; milliseconds: number }> {
  const began = performance.now();
  const body = JSON.stringify({ username, password });
  const status = await send(port, 'POST', '/token', body, { 'x-forwarded-for': address });
  return { status, milliseconds: performance.now() - began };
}

const agent = new Agent({ keepAlive: true });

/** Sends a request and resolves with its status once the answer is complete. */
function send(
  port: number,
  method: string,
  path: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', method, path, agent };
    const all = { authorization: TOKEN, ...headers };
    const request = httpRequest({ ...options, headers: all }, (response) => {
      response.resume();
      response.on('end', () => resolve(Number(response.statusCode)));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

async function withService(
  name: string,
  open: () => Promise<BenchStore>,
  env: Record<string, string>,
  attack: (store: string, service: Measured) => Promise<void>,
  books = STANDING_BOOKS,
): Promise<void> {
  const store = await open();
  const service = await startService(store.dbUrl, env);
  try {
    await store.addBooks(books);
    await attack(name, service);
  } finally {
    await service.stop();
    await store.remove();
  }
}

function record(siege: string, store: string, figure: string, bound: string, holds: boolean): void {
  findings.push({ siege, store, figure, bound, holds });
}

function median(values: number[]): number {
  values.sort((one, other) => one - other);
  return values[Math.floor(values.length / 2)] as number;
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

if (options.help) {
  process.stdout.write(HELP);
} else {
  await siege();
}
