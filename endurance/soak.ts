// Owns: the soak as a command. Real services under mixed load for a long time, with one fault after the other;
// afterwards nothing may have grown, slowed down or been lost. Starts everything itself, and stops by itself.

import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { request } from '../test/support/client.ts';
import { Ledger } from '../test/support/ledger.ts';
import { execute, PostgresServer } from '../test/support/postgres.ts';
import { type ServiceProcess, startServiceProcess, temporaryFolder } from '../test/support/service.ts';

const HELP = `Usage: npm run soak -- [options]

Puts mixed load and one fault after the other on a service that it starts itself. At the end nothing may have grown,
slowed down or been lost. Ctrl-C ends it early, with the summary so far.

  --minutes <n>     minutes for all the stores together (5)
  --store <name>    sqlite, postgres or both (both)
  --workers <n>     WORKERS of the service (1)
  --help            print this
`;

/** Seconds of load before anything is measured: code is compiled and memory settles. */
const WARM_UP = 30;
/** Seconds of load with one fault, after which every book is checked. */
const CYCLE = 12;
/** Seconds of a measuring window, in which the load is light and the same each time. */
const WINDOW = 10;
/** Seconds after which a write that was answered with 503 has happened, or never will. */
const SETTLING = 6;
const WRITERS = 8;
const READERS = 4;

// What may differ between start and end.
const MEMORY_ALLOWANCE = 64; // MiB
const P99_FACTOR = 2;
const P99_ALLOWANCE = 5; // ms; below, the noise of a machine is larger than any factor
/** A busy machine becomes quiet some time; a service that has slowed down stays slow. */
const MOST_WINDOWS = 4;

interface Store {
  readonly name: 'SQLite' | 'PostgreSQL';
  /** How many more descriptors there may be at the end. */
  readonly spareDescriptors: number;
  readonly dbUrl: string;
  readonly faults: readonly Fault[];
  /** How many connections the service has to it. */
  connections(): Promise<number>;
  remove(): Promise<void>;
}

interface Fault {
  readonly name: string;
  /** Causes the fault, and repairs it before it resolves. */
  strike(service: ServiceProcess): Promise<void>;
}

interface Measurement {
  /** MiB of all processes of the service. */
  readonly memory: number;
  /** Open files and the like, without connections. */
  readonly descriptors: number;
  /** Connections whose client is gone. */
  readonly forgotten: number;
  readonly storeConnections: number;
  /** Milliseconds; the median of the values of each second. */
  readonly p99: number;
}

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    store: { type: 'string', default: 'both' },
    workers: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});

let interrupted = false;
const faultsFound: string[] = [];

async function soak(): Promise<void> {
  process.once('SIGINT', () => {
    interrupted = true;
  });
  const openers = { sqlite: [openSqlite], postgres: [openPostgres], both: [openSqlite, openPostgres] };
  const chosen = openers[options.store as keyof typeof openers];
  const seconds = Number(options.minutes) * 60;
  if (chosen === undefined || !(seconds > 0)) {
    process.stderr.write(
      '--store must be sqlite, postgres or both, and --minutes a number above 0. See --help.\n',
    );
    process.exitCode = 2;
    return;
  }
  for (const open of chosen) {
    if (interrupted) break;
    const store = await open();
    try {
      await soakStore(store, seconds / chosen.length);
    } finally {
      await store.remove();
    }
  }
  for (const sentence of faultsFound) process.stderr.write(`${sentence}\n`);
  process.exitCode = faultsFound.length > 0 ? 1 : 0;
}

async function soakStore(store: Store, seconds: number): Promise<void> {
  const service = await startServiceProcess(store.dbUrl, { WORKERS: options.workers });
  try {
    const end = Date.now() + seconds * 1000;
    const ledger = new Ledger();
    progress(`${store.name}: warming up`);
    await applyLoad(service, ledger, Math.min(WARM_UP, seconds / 3));
    await sweep(service, ledger);
    const before = await measure(store, service);
    let cycles = 0;
    while (!interrupted && (cycles === 0 || Date.now() + (CYCLE + WINDOW + SETTLING) * 1000 < end)) {
      const fault = store.faults[cycles % store.faults.length] as Fault;
      const left = Math.max(0, (end - Date.now()) / 60_000).toFixed(1);
      progress(
        `${store.name}: ${fault.name}; ${ledger.acknowledged} writes acknowledged, ${left} minutes left`,
      );
      await Promise.all([applyLoad(service, ledger, CYCLE), pause(1000).then(() => fault.strike(service))]);
      await sweep(service, ledger);
      service.log.length = 0;
      cycles += 1;
    }
    let after = await measure(store, service);
    for (
      let windows = 1;
      after.p99 > mostP99(before) && windows < MOST_WINDOWS && !interrupted;
      windows += 1
    ) {
      after = await measure(store, service);
    }
    report(store, before, after, `${cycles} faults, ${ledger.acknowledged} writes acknowledged`);
  } catch (error) {
    // Ctrl-C on a terminal also reaches the service; its answers up to the last fault have been compared.
    if (interrupted && error instanceof TypeError)
      console.log(`\n${store.name}: stopped before the final measurement`);
    else faultsFound.push(`On ${store.name}: ${(error as Error).message}`);
  } finally {
    service.process.kill('SIGTERM');
    await service.stop();
  }
}

/** All kinds of clients, the bad ones included, for some seconds. */
async function applyLoad(service: ServiceProcess, ledger: Ledger, seconds: number): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  const repeat = async (act: () => Promise<unknown>, rest: number) => {
    while (Date.now() < deadline && !interrupted) {
      await act();
      await pause(rest);
    }
  };
  const ask = (...[method, path, more]: Parameters<ServiceProcess['client']['request']>) =>
    service.client.request(method, path, more).catch(ignoreBroken);
  const writers = Array.from({ length: WRITERS }, () => {
    const writer = ledger.writer(service.client);
    return repeat(() => writer.write(), 5);
  });
  const readers = Array.from({ length: READERS }, () => repeat(() => ledger.read(service.client), 2));
  await Promise.all([
    ...writers,
    ...readers,
    repeat(() => ledger.read(service.client, '/books'), 1000),
    repeat(() => ask('GET', '/book/1', { token: `${service.client.token}x` }), 20),
    repeat(() => ask('POST', '/book', { body: '{"title":' }), 20),
    repeat(() => abort(service), 20),
    repeat(() => dawdle(service), 100),
  ]);
}

/** A request throws a TypeError if its connection breaks. */
function ignoreBroken(error: unknown): void {
  if (!(error instanceof TypeError)) throw error;
}

/** Disconnects in the middle of a body. */
async function abort({ port, client }: ServiceProcess): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    `POST /book HTTP/1.1\r\nHost: x\r\nAuthorization: ${client.token}\r\nContent-Length: 99\r\n\r\n{`,
  );
  await pause(5);
  socket.destroy();
}

/** Sends a request in small pieces. */
async function dawdle({ port }: ServiceProcess): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.resume();
  for (const piece of ['GET /bo', 'oks HTTP/1.1\r\nHo', 'st: x\r\n', 'Connection: close\r\n\r\n']) {
    socket.write(piece);
    await pause(100);
  }
  socket.destroy();
}

/** Compares every book with the acknowledged writes, then removes all books, so that there are never many. */
async function sweep(service: ServiceProcess, ledger: Ledger): Promise<void> {
  await pause(SETTLING * 1000);
  await ledger.reconcile(service.client);
  const books = await service.client.list();
  const client = ledger.of(service.client);
  const remove = async () => {
    for (let book = books.pop(); book !== undefined; book = books.pop()) {
      const { status } = await client.request('DELETE', `/book/${book.id}`);
      if (status !== 200) throw new Error(`the removal of book ${book.id} was answered with ${status}`);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, remove));
  await ledger.reconcile(service.client);
}

/** Measures the service under the same light load each time, while nothing else happens. */
async function measure(store: Store, service: ServiceProcess): Promise<Measurement> {
  progress(`${store.name}: measuring`);
  const perSecond: number[] = [];
  for (let second = 0; second < WINDOW; second += 1) {
    const times: number[] = [];
    const deadline = Date.now() + 1000;
    const client = async () => {
      while (Date.now() < deadline) {
        const begin = performance.now();
        const { data } = await service.client.request('POST', '/book', { body: { title: 'measured' } });
        const middle = performance.now();
        await service.client.request('DELETE', `/book/${data.id}`);
        times.push(middle - begin, performance.now() - middle);
        await pause(2);
      }
    };
    await Promise.all([client(), client(), client(), client()]);
    perSecond.push(quantile(times, 0.99));
  }
  const processes = processesOf(service.process.pid as number);
  const { ofService, ofClients } = connectionsOn(service.port);
  const storeConnections = await store.connections();
  const descriptors = processes.reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length, 0);
  return {
    memory: processes.reduce((sum, pid) => sum + residentMemory(pid), 0),
    descriptors: descriptors - ofService - storeConnections,
    forgotten: ofService - ofClients,
    storeConnections,
    p99: quantile(perSecond, 0.5),
  };
}

/** The highest p99 that is allowed at the end, in milliseconds. */
function mostP99({ p99 }: Measurement): number {
  return Math.max(p99 * P99_FACTOR, p99 + P99_ALLOWANCE);
}

function report(store: Store, before: Measurement, after: Measurement, done: string): void {
  const rows: [name: string, before: number, after: number, most: number][] = [
    ['memory, MiB', before.memory, after.memory, before.memory + MEMORY_ALLOWANCE],
    ['descriptors', before.descriptors, after.descriptors, before.descriptors + store.spareDescriptors],
    ['forgotten connections', before.forgotten, after.forgotten, 0],
    [
      'connections to the store',
      before.storeConnections,
      after.storeConnections,
      18 * Number(options.workers),
    ],
    ['p99, ms', before.p99, after.p99, mostP99(before)],
  ];
  console.log(`\n${store.name}: ${done}`);
  console.log(
    `${''.padEnd(26)}${['start', 'end', 'ratio', 'at most'].map((word) => word.padStart(10)).join('')}`,
  );
  for (const [name, start, end, most] of rows) {
    const cells = [
      start.toFixed(1),
      end.toFixed(1),
      start === 0 ? '-' : (end / start).toFixed(2),
      most.toFixed(1),
    ];
    console.log(`${name.padEnd(26)}${cells.map((cell) => cell.padStart(10)).join('')}`);
    if (end > most)
      faultsFound.push(`On ${store.name}, ${name} grew from ${start.toFixed(1)} to ${end.toFixed(1)}.`);
  }
}

async function openSqlite(): Promise<Store> {
  const file = join(temporaryFolder(), 'books.db');
  return {
    name: 'SQLite',
    // While a file is locked, SQLite keeps the descriptor of each closed connection for the next one to use: one for
    // each list that was open at the same time as others, of which there are 32 at most.
    spareDescriptors: 32,
    dbUrl: `sqlite:${file}`,
    faults: [
      {
        name: 'locked by another process',
        async strike() {
          const db = new DatabaseSync(file, { timeout: 5000 });
          db.exec('begin immediate');
          await pause(6000); // longer than a write waits
          db.close();
        },
      },
      ...COMMON_FAULTS,
    ],
    connections: async () => 0,
    async remove() {}, // its folder is removed when this process exits
  };
}

async function openPostgres(): Promise<Store> {
  const server = await PostgresServer.start();
  const others = "from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
  return {
    name: 'PostgreSQL',
    spareDescriptors: 0,
    dbUrl: server.url(),
    faults: [
      {
        name: 'PostgreSQL is restarted',
        async strike() {
          await server.stop();
          await pause(2000);
          await server.startAgain();
        },
      },
      {
        name: 'its connections are ended',
        async strike() {
          for (let count = 0; count < 5; count += 1) {
            await execute(server.url(), `select pg_terminate_backend(pid) ${others}`);
            await pause(500);
          }
        },
      },
      ...COMMON_FAULTS,
    ],
    async connections() {
      const [row] = await execute<{ count: number }>(server.url(), `select count(*)::int ${others}`);
      return Number(row?.count);
    },
    remove: () => server.remove(),
  };
}

const COMMON_FAULTS: readonly Fault[] = [
  {
    name: 'readers of the list stall',
    async strike({ port, client }) {
      const sockets = Array.from({ length: 4 }, () => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => {});
        socket.write(`GET /books HTTP/1.1\r\nHost: x\r\nAuthorization: ${client.token}\r\n\r\n`);
        return socket;
      });
      await pause((CYCLE - 4) * 1000);
      for (const socket of sockets) socket.destroy();
    },
  },
  {
    name: Number(options.workers) > 1 ? 'a worker is killed' : 'bad logins',
    async strike(service) {
      const [, worker] = processesOf(service.process.pid as number);
      if (worker !== undefined) process.kill(worker, 'SIGKILL');
      const guess = { body: { username: 'x', password: 'y' } };
      const guesses = Array.from({ length: 200 }, () => request(service, 'POST', '/token', guess));
      await Promise.all(guesses.map((answer) => answer.catch(ignoreBroken)));
    },
  },
];

/** The process and its children. */
function processesOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return [pid, ...children.map(Number)];
}

/** In MiB. */
function residentMemory(pid: number): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) / 1024;
}

/** Connections to a port that are still open on the service's side, and on the clients'. */
function connectionsOn(port: number): { ofService: number; ofClients: number } {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const rows = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1);
  const open = rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , , state]) => state === '01' || state === '08'); // established, close-wait
  return {
    ofService: open.filter(([, local]) => local?.endsWith(`:${hex}`)).length,
    ofClients: open.filter(([, , remote]) => remote?.endsWith(`:${hex}`)).length,
  };
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
}

/** Overwrites one line on a terminal; prints one line each elsewhere. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else process.stderr.write(`${text}\n`);
}

if (options.help) process.stdout.write(HELP);
else await soak();
