// Owns: mutants of the process: its configuration, commands, log and metrics, and how it starts and ends, alone or as
// several workers.

import { Mutants } from './mutant.ts';

const HOST = 'test/api/host.test.ts';
const COMMANDS = 'test/process/commands.test.ts';
const DEMO = 'test/process/demo.test.ts';
const LIFECYCLE = 'test/process/lifecycle.test.ts';
const WORKERS = 'test/process/workers.test.ts';
const CONFIGURATION = 'test/process/configuration.test.ts';
const LOG = 'test/process/log.test.ts';
const PERMISSIONS = 'test/process/permissions.test.ts';
const OPERATIONS = 'test/operations/operations.test.ts';
const COMPILE = 'test/nightly/compile.test.ts';
const METRICS = 'test/operations/metrics.test.ts';
const NIGHTLY_WORKERS = 'test/nightly/workers.test.ts';
const TIMES = 'test/project/times.test.ts';

export const PROCESS_MUTANTS = new Mutants()
  .in('src/times.ts')
  .mutant('a shutdown takes longer than 10 s', TIMES, 'rule 27: the process and its')
  .change('grace: 5 * SECOND', 'grace: 13 * SECOND')
  .mutant('a failed replacement of a worker is retried every 15 s', TIMES, 'retried after a second')
  .change('retryPause: SECOND', 'retryPause: 15 * SECOND')
  .mutant('every slow request is logged as slow', LOG, 'LOG_LEVEL=warn, slow requests')
  .change('slowLinesApart: SECOND', 'slowLinesApart: 0')
  .mutant(
    'one Ctrl-C that comes as two signals ends the process at once',
    LIFECYCLE,
    'two signals at the same moment',
  )
  .change('doubleSignal: 500', 'doubleSignal: 0')
  .in('src/process.ts')
  .mutant('every user of the machine reads the store', PERMISSIONS, 'for their user only')
  .change('process.umask(0o077);', '')
  .in('src/service.ts')
  .mutant(
    'an idle connection is closed at SIGTERM without time for a last request',
    LIFECYCLE,
    'last request',
  )
  .change('http.close(lastRequest, grace)', 'http.close(0, grace)')
  .mutant('a service with an overloaded store is not ready', OPERATIONS, 'because too many wait')
  .change('store.find([1], performance.now() + times.service.answer).then(', 'catalogue.find(1).then(')
  .in('src/api/app.ts')
  .mutant('answers do not say that their connection ends', LIFECYCLE, 'requests completed after SIGTERM')
  .change("    if (http.isLast(response)) list.push('connection', 'close');\n", '')
  .mutant('a page of any name gets a token with the built-in password', HOST, 'on every port')
  .change('else if (isMisdirected) answer = answers.MISDIRECTED_REQUEST;', '')
  .in('src/process.ts')
  .mutant('a message that cannot be written ends an import', COMMANDS, 'messages that cannot be written')
  .change("  process.stderr.on('error', () => {});\n", '')
  .mutant('output that cannot be written is a success', COMMANDS, 'output that cannot be written')
  .change('const isLost = code === 0 && lost !== undefined;', 'const isLost = false;')
  .in('src/commands/demo.ts')
  .mutant('the account of the environment logs in to the demo', DEMO, 'no variable leads')
  .change('readConfig({ PORT, ADMIN_PORT, PAGE_PORT, LOG_LEVEL, DB_URL })', 'readConfig({ ...env, DB_URL })')
  .mutant('the demo leaves its store behind', DEMO, 'SIGHUP ends it')
  .change('rmSync(folder, { recursive: true, force: true, maxRetries: 3 });', '')
  .in('src/workers.ts')
  .mutant('connections are handed to a worker that hangs', WORKERS, 'while a worker hangs')
  .change('cluster.schedulingPolicy = cluster.SCHED_NONE;', '')
  .mutant('the end waits for a worker that hangs', NIGHTLY_WORKERS, 'ends within 10 s')
  .change("for (const worker of workers) worker.process.kill('SIGKILL');", '')
  .mutant(
    'a failed replacement of a worker is retried without a pause',
    NIGHTLY_WORKERS,
    'retried after a second',
  )
  .change('await pause(TIMES.workers.retryPause);', '')
  .in('src/config.ts')
  .mutant('ADMIN_HOST is ignored', OPERATIONS, 'ADMIN_HOST')
  .change("addressOf(given.text('ADMIN_HOST') ?? LOOPBACK)", 'LOOPBACK')
  .mutant(
    'other machines reach a service whose secret is random',
    CONFIGURATION,
    'without SECRET_TOKEN is refused',
  )
  .change("hasPair && given.secret('SECRET_TOKEN') !== undefined", 'hasPair')
  .in('src/commands/config.ts')
  .mutant('config shows the password of the store', COMMANDS, 'config: prints every value')
  .change("if (secret === 'password') return", "if (none === 'password') return")
  .in('src/environment.ts')
  .mutant('a carriage return at the end of a value is part of it', CONFIGURATION, 'quotation marks, control')
  .change('/^\\s|[[\\p{Cc}\\p{Cf}]--[\\u200c\\u200d]]|\\s$/v', '/^\\s/v')
  .mutant('quotation marks around a value are part of it', CONFIGURATION, 'quotation marks, control')
  .change('if (/^\\p{Quotation_Mark}.*', 'if (/^\\p{Quotation_Mark}{9}.*')
  .in('src/final-path.ts')
  .mutant('sqlite:~/books.db makes a folder named ~', CONFIGURATION, 'a shell would expand')
  .change('/^~[\\w.-]*', '/^~~[\\w.-]*')
  .in('src/terminal/printable.ts')
  .mutant('a value that is shown controls the terminal', CONFIGURATION, 'quotation marks, control')
  .change('printable(line)', 'line')
  .in('src/stores/sqlite/access.ts')
  .mutant('a folder that the user may not write is not named', PERMISSIONS, 'may not use is named')
  .change("if (code === 'EACCES' ||", "if (code === 'EPERM' ||")
  .in('src/stores/sqlite/structure.ts')
  .mutant('a store that the user may not see is taken for none', PERMISSIONS, 'may not use is named')
  .change(
    'if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;',
    'if (!existsSync(path)) return undefined;',
  )
  .in('src/stores/open.ts')
  .mutant('a % that is no escape is left to the driver', CONFIGURATION, 'of a password with an unescaped')
  .change('decodeURIComponent(url);', '')
  .mutant('an error message shows the password', CONFIGURATION, 'of a password with an unescaped')
  .change(".includes('@');", ".includes('@@');")
  .in('src/api/faults.ts')
  .mutant('a refused body is not logged', LOG, 'no room')
  .change("logBody(reqId, 'the memory for request bodies is used up')", '')
  .mutant('a fault of the service is not logged', LOG, 'any other fault')
  .change("        log.error({ reqId, err: error }, 'a request failed');\n", '')
  .mutant('a late request counts as a failed one', METRICS, 'count by the reason')
  .change(
    'requests.storeFaults[kind] += 1;',
    "requests.storeFaults[kind === 'late' ? 'failure' : kind] += 1;",
  )
  .in('src/log/destination.ts')
  .mutant('lost lines are counted once for each piece of text', LOG, 'how many lines were lost')
  .change("this.lost += this.#text.split('\\n').length - 1;", 'this.lost += 1;')
  .mutant('the last lines of the log are lost with the process', LOG, 'the last lines are written')
  .change('writeSync(this.#fd, this.#text);', '')
  .in('src/stores/postgres/connections.ts')
  .mutant('hosts that take over are not counted', METRICS, 'hosts of PostgreSQL')
  .change('this.#hostChanges += 1;', '')
  .in('src/stores/sqlite/thread.ts')
  .mutant('a thread translates its file at each start', COMPILE, 'translates no file')
  .change('env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },', 'env: {},')
  .in('src/admin/listener.ts')
  .mutant('a page of any name reads the operations listener', HOST, 'on the operations port alone')
  .change('onlyThisMachine && !namesThisMachine', 'false && !namesThisMachine').all;
