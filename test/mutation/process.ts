// Owns: mutants of the process: its configuration, commands, log and metrics, and how it starts and ends, alone or as
// several workers.

import type { Mutant } from './mutant.ts';

const HOST = 'test/api/host.test.ts';
const COMMANDS = 'test/process/commands.test.ts';
const DEMO = 'test/process/demo.test.ts';
const LIFECYCLE = 'test/process/lifecycle.test.ts';
const WORKERS = 'test/process/workers.test.ts';
const CONFIGURATION = 'test/process/configuration.test.ts';
const LOG = 'test/process/log.test.ts';
const METRICS = 'test/operations/metrics.test.ts';
const OPERATIONS = 'test/operations/operations.test.ts';

export const PROCESS_MUTANTS: readonly Mutant[] = [
  {
    name: 'an idle connection is closed at SIGTERM without time for a last request',
    file: 'src/service.ts',
    from: 'const LAST_REQUEST = 500;',
    to: 'const LAST_REQUEST = 0;',
    test: { file: LIFECYCLE, name: 'last request', store: 'SQLite' },
  },
  {
    name: 'answers do not say that their connection ends',
    file: 'src/api/app.ts',
    from: "    if (http.isLast(response)) more.push('connection', 'close');\n",
    to: '',
    test: { file: LIFECYCLE, name: 'requests completed after SIGTERM', store: 'SQLite' },
  },
  {
    name: 'one Ctrl-C that comes as two signals ends the process at once',
    file: 'src/process.ts',
    from: 'const DOUBLE_SIGNAL_WINDOW = 500;',
    to: 'const DOUBLE_SIGNAL_WINDOW = 0;',
    test: { file: LIFECYCLE, name: 'two signals at the same moment', store: 'SQLite' },
  },
  {
    name: 'a message that cannot be written ends an import',
    file: 'src/process.ts',
    from: "  process.stderr.on('error', () => {});\n",
    to: '',
    test: { file: COMMANDS, name: 'messages that cannot be written', store: 'SQLite' },
  },
  {
    name: 'output that cannot be written is a success',
    file: 'src/process.ts',
    from: 'if (code !== 0 || lost === undefined) process.exit(code);',
    to: 'process.exit(code);',
    test: { file: COMMANDS, name: 'output that cannot be written', store: 'SQLite' },
  },
  {
    name: 'the account of the environment logs in to the demo',
    file: 'src/commands/demo.ts',
    from: 'await serveOn({ PORT, ADMIN_PORT, PAGE_PORT });',
    to: 'await serveOn(env);',
    test: { file: DEMO, name: 'no variable leads', store: 'SQLite' },
  },
  {
    name: 'the demo leaves its store behind',
    file: 'src/commands/demo.ts',
    from: 'rmSync(folder, { recursive: true, force: true, maxRetries: 3 });',
    to: '',
    test: { file: DEMO, name: 'SIGTERM ends it', store: 'SQLite' },
  },
  {
    name: 'a shutdown takes longer than 10 s',
    file: 'src/service.ts',
    from: 'const GRACE = 6000;',
    to: 'const GRACE = 14_000;',
    test: { file: 'test/limits/start-and-end.test.ts', name: 'with WORKERS=1', store: 'SQLite' },
  },
  {
    name: 'a failed replacement of a worker is retried every 15 s',
    file: 'src/workers.ts',
    from: 'const RETRY_PAUSE = 1000;',
    to: 'const RETRY_PAUSE = 15_000;',
    test: { file: WORKERS, name: 'retried every second', store: 'SQLite' },
  },
  {
    name: 'a failed replacement of a worker is retried without a pause',
    file: 'src/workers.ts',
    from: 'await pause(RETRY_PAUSE);',
    to: '',
    test: { file: WORKERS, name: 'retried every second', store: 'SQLite' },
  },
  {
    name: 'workers share a port that is already in use',
    file: 'src/service.ts',
    from: "if (use === 'first') await assertPortFree(place);",
    to: '',
    test: { file: WORKERS, name: 'a port that other workers already share', store: 'SQLite' },
  },
  {
    name: 'ADMIN_HOST is ignored',
    file: 'src/config.ts',
    from: "addressOf(given.text('ADMIN_HOST') ?? LOOPBACK)",
    to: 'LOOPBACK',
    test: { file: OPERATIONS, name: 'ADMIN_HOST', store: 'SQLite' },
  },
  {
    name: 'other machines reach a service whose secret is random',
    file: 'src/config.ts',
    from: "hasPair && given.text('SECRET_TOKEN') !== undefined",
    to: 'hasPair',
    test: { file: CONFIGURATION, name: 'without SECRET_TOKEN is refused', store: 'SQLite' },
  },
  {
    name: 'an error message shows the password',
    file: 'src/stores/open.ts',
    from: ".includes('@');",
    to: ".includes('@@');",
    test: { file: CONFIGURATION, name: 'of a password with an unescaped', store: 'SQLite' },
  },
  {
    name: 'a refused body is not logged',
    file: 'src/api/faults.ts',
    from: "      this.#logBody(reqId, 'the memory for request bodies is used up');\n",
    to: '',
    test: { file: LOG, name: 'no room', store: 'SQLite' },
  },
  {
    name: 'every slow request is logged as slow',
    file: 'src/log/log.ts',
    from: 'const SLOW_LINES_APART = 1000;',
    to: 'const SLOW_LINES_APART = 0;',
    test: { file: LOG, name: 'LOG_LEVEL=warn, slow requests', store: 'SQLite' },
  },
  {
    name: 'a fault of the service is not logged',
    file: 'src/api/faults.ts',
    from: "    this.#log.error({ reqId, err: error }, 'a request failed');\n",
    to: '',
    test: { file: LOG, name: 'any other fault', store: 'SQLite' },
  },
  {
    name: 'lost lines are counted once for each piece of text',
    file: 'src/log/destination.ts',
    from: "this.#lost += text.split('\\n').length - 1;",
    to: 'this.#lost += 1;',
    test: { file: LOG, name: 'how many lines were lost', store: 'SQLite' },
  },
  {
    name: 'a late request counts as a failed one',
    file: 'src/api/faults.ts',
    from: 'this.#requests.storeFaults[kind] += 1;',
    to: "this.#requests.storeFaults[kind === 'late' ? 'failure' : kind] += 1;",
    test: { file: METRICS, name: 'requests that are late', store: 'PostgreSQL' },
  },
  {
    name: 'hosts that take over are not counted',
    file: 'src/stores/postgres/server/connections.ts',
    from: 'this.#hostChanges += 1;',
    to: '',
    test: { file: METRICS, name: 'hosts of PostgreSQL', store: 'PostgreSQL' },
  },
  {
    name: 'a replaced thread is not counted',
    file: 'src/stores/sqlite/thread.ts',
    from: 'this.restarts += 1;',
    to: '',
    test: { file: METRICS, name: 'the threads that write', store: 'SQLite' },
  },
  {
    name: 'a thread translates its file at each start',
    file: 'src/stores/sqlite/thread.ts',
    from: 'env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },',
    to: 'env: {},',
    test: { file: 'test/process/compile.test.ts', name: 'translates no file', store: 'SQLite' },
  },
  {
    name: 'a service with an overloaded store is not ready',
    file: 'src/service.ts',
    from: 'store.find([1], performance.now() + ANSWER_TIMEOUT).then(',
    to: 'catalogue.find(1).then(',
    test: { file: OPERATIONS, name: 'more to do than it can', store: 'PostgreSQL' },
  },
  {
    name: 'a page of any name gets a token with the built-in password',
    file: 'src/api/app.ts',
    from: 'else if (isMisdirected) answer = MISDIRECTED_REQUEST;',
    to: '',
    test: { file: HOST, name: 'on every port', store: 'SQLite' },
  },
  {
    name: 'a page of any name reads the operations listener',
    file: 'src/admin/listener.ts',
    from: 'onlyThisMachine && !namesThisMachine',
    to: 'false && !namesThisMachine',
    test: { file: HOST, name: 'on the operations port alone', store: 'SQLite' },
  },
  {
    name: 'the last lines of the log are lost with the process',
    file: 'src/log/destination.ts',
    from: 'writeSync(this.#fd, this.#text);',
    to: '',
    test: { file: LOG, name: 'printed with its stack', store: 'SQLite' },
  },
];
