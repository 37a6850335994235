// Owns: the settings (rules 14, 16, 22, 25 to 27), each in one row of one table, read once into one frozen Config.
// Does not: accept an invalid value, which it refuses in one sentence that names the variable; or touch the store:
// `stores/open.ts` interprets DB_URL.

import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { type Credentials, LOGIN_LIMIT } from './auth/credentials.ts';
import { type Environment, Given, misnamed } from './environment.ts';
import { OperatorError } from './operator-error.ts';
import { list, OFF, onOrOff, readNumber, type Setting, wholeNumber } from './setting.ts';

/** A level also shows the lines of the levels before it; `silent` shows none. */
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The pair that logs in until an operator sets another one. */
const BUILT_IN = { username: 'admin', password: 'password' } as const;

const LOOPBACK = '127.0.0.1';
const ADVISED_SECRET_BYTES = 32; // RFC 7518 section 3.2: an HS256 key is at least as long as its digest
const LAST_PORT = 65_535;
const MIB = 1024 ** 2;
const DAYS_OF_HISTORY = 90; // the default
const MOST_DAYS_OF_HISTORY = 36_500;
const LONGEST_NAME = 60; // code points

/** Every setting, in the order in which `config` and `--help` show them. */
export const SETTINGS = {
  port: wholeNumber('PORT', 'port to listen on', 8080, 0, LAST_PORT),
  host: {
    name: 'HOST',
    help: 'address to listen on',
    absent:
      '`127.0.0.1`, this machine only, until `AUTH_USERNAME`, `AUTH_PASSWORD` and `SECRET_TOKEN` are set; then every address',
    none: '(every address)',
    read: readHost,
  },
  dbUrl: {
    name: 'DB_URL',
    help: '`sqlite:<path>` or `postgres://user:password@host:port/database`, several hosts as `host:port,host:port`',
    absent: '`sqlite:data/books.db`',
    secret: 'password',
    read: (given) => given.secret('DB_URL') ?? 'sqlite:data/books.db',
  },
  readUrl: {
    name: 'DB_READ_URL',
    help: '`postgres://…` of a standby of `DB_URL`, which answers lists and searches while it is as new as the primary',
    absent: 'none',
    secret: 'password',
    read: (given) => given.secret('DB_READ_URL'),
  },
  signingSecret: {
    name: 'SECRET_TOKEN',
    help: 'secret that signs tokens; 32 bytes or more are advised',
    absent: 'random, new at every start',
    secret: 'whole',
    read: (given) => given.secret('SECRET_TOKEN') ?? randomBytes(ADVISED_SECRET_BYTES).toString('base64url'),
  },
  previousSigningSecret: {
    name: 'SECRET_TOKEN_PREVIOUS',
    help: 'the previous secret, whose tokens and sessions are accepted until they expire',
    absent: 'none',
    secret: 'whole',
    read: readPreviousSecret,
  },
  username: {
    name: 'AUTH_USERNAME',
    help: 'username for logging in',
    absent: `\`${BUILT_IN.username}\``,
    read: (given) => readPair(given)?.username ?? BUILT_IN.username,
  },
  password: {
    name: 'AUTH_PASSWORD',
    help: 'password for logging in',
    absent: `\`${BUILT_IN.password}\``,
    secret: 'whole',
    read: (given) => readPair(given)?.password ?? BUILT_IN.password,
  },
  workers: wholeNumber('WORKERS', 'number of processes that serve together, to use as many cores', 1, 1, 256),
  find: onOrOff(
    'FIND',
    'whether books can be searched, which takes an index of about four times their size',
    'on',
  ),
  history: {
    name: 'HISTORY',
    help: 'days for which changes are kept, `forever`, or `off`: without `/changes` and histories',
    absent: '`90`',
    none: 'off',
    read: readHistory,
  },
  requireIfMatch: onOrOff(
    'REQUIRE_IF_MATCH',
    'whether a change or a removal must name the state of the book',
    'off',
  ),
  admin: {
    name: 'ADMIN_PORT',
    help: 'port for operators: `/livez`, `/readyz`, `/metrics`, `/openapi.json`, `/docs`, `/manual`',
    absent: '`PORT` + 1, or none if that is in use',
    read: readAdmin,
  },
  adminHost: {
    name: 'ADMIN_HOST',
    help: 'address to listen on for `ADMIN_PORT`',
    absent: '`127.0.0.1`, this machine only',
    read: (given) => addressOf(given.text('ADMIN_HOST') ?? LOOPBACK),
  },
  page: {
    name: 'PAGE_PORT',
    help: 'port of the page for librarians, which is also on `HOST`; `off`: no page',
    absent: '`PORT` + 2, or none if that is in use or `FIND` is off',
    none: 'off',
    read: readPage,
  },
  libraryName: {
    name: 'LIBRARY_NAME',
    help: `name that the page shows, up to ${LONGEST_NAME} characters`,
    absent: '`Book catalogue`',
    none: 'Book catalogue',
    read: readLibraryName,
  },
  corsOrigins: list(
    'CORS_ORIGINS',
    'origins whose pages may call the service from a browser, separated by commas',
    'its own `/docs`',
    'origins without a path, such as https://books.example.org',
    (origin) => /^https?:[^*]+$/.test(origin) && URL.canParse(origin) && new URL(origin).origin === origin,
  ),
  trustedProxies: list(
    'TRUST_PROXY',
    'addresses or networks of proxies whose `X-Forwarded-For` is trusted, separated by commas',
    'none',
    'addresses or networks such as 127.0.0.1,10.0.0.0/8',
    isNetwork,
  ),
  logLevel: {
    name: 'LOG_LEVEL',
    help: '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
    absent: '`info`',
    read: readLogLevel,
  },
  bodyLimit: wholeNumber('BODY_LIMIT', 'largest request body, in bytes', MIB, 1, 256 * MIB),
  bulkLimit: wholeNumber('BULK_LIMIT', 'largest body with many books, in bytes', 16 * MIB, 1, 128 * MIB),
  importLimit: wholeNumber(
    'IMPORT_LIMIT',
    'largest file of `POST /import`, and all such files together, in bytes',
    1024 * MIB,
    1,
    4096 * MIB - 1,
  ),
  headerLimit: wholeNumber('HEADER_LIMIT', 'largest request line and headers, in bytes', 16_384, 1024, MIB),
} as const satisfies Readonly<Record<string, Setting>>;

export const ROWS: readonly Setting[] = Object.values(SETTINGS);

type Settings = { readonly [Key in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Key]['read']> };

export interface Config extends Settings {
  /** Whether the secret is random, since SECRET_TOKEN is not set. */
  readonly randomSecret: boolean;
  /** The built-in pair if it logs in. Every reader of the documentation has it, so only this machine is served (rule 33). */
  readonly knownLogin: Credentials | undefined;
  /** Sentences for the operator about settings that do not prevent the start. */
  readonly warnings: readonly string[];
}

/** @throws OperatorError if a variable is invalid. */
export function readConfig(env: Environment): Config {
  const given = new Given(env);
  const entries = Object.entries(SETTINGS).map(([key, { read }]) => [key, read(given)]);
  const settings: Settings = Object.fromEntries(entries);
  const { admin, find, page, signingSecret } = settings;
  const knownLogin = readPair(given) === undefined ? BUILT_IN : undefined;
  const randomSecret = given.secret('SECRET_TOKEN') === undefined;
  const warnings = misnamed(env, ROWS);
  if (knownLogin !== undefined) {
    warnings.push(
      'AUTH_USERNAME and AUTH_PASSWORD are not set: the service accepts the built-in pair admin / password.',
    );
  }
  if (randomSecret) {
    warnings.push(
      'SECRET_TOKEN is not set: tokens are signed with a random secret and become invalid when this process ends.',
    );
  } else if (Buffer.byteLength(signingSecret) < ADVISED_SECRET_BYTES) {
    warnings.push(`SECRET_TOKEN is shorter than ${ADVISED_SECRET_BYTES} bytes: set a longer one.`);
  }
  if (page === undefined && find && env.PAGE_PORT === undefined) {
    warnings.push(`ADMIN_PORT ${admin.port} is the default of PAGE_PORT: the service runs without the page.`);
  }
  return Object.freeze({ ...settings, randomSecret, knownLogin, warnings });
}

/**
 * Reads one setting, for a command that needs no other.
 * @throws OperatorError if the variable is invalid.
 */
export function readSetting<Key extends keyof Settings>(key: Key, env: Environment): Settings[Key] {
  return SETTINGS[key].read(new Given(env)) as Settings[Key];
}

/** Whether only this machine can reach the address (undefined: every interface). */
export function isLoopback(host: string | undefined): boolean {
  return host === '::1' || (host !== undefined && isIP(host) === 4 && host.startsWith('127.'));
}

function isNetwork(text: string): boolean {
  const [, address = '', prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  return bits > 0 && (prefix === undefined || (Number(prefix) > 0 && Number(prefix) <= bits));
}

/** @returns undefined if the built-in pair logs in. */
function readPair(given: Given): Credentials | undefined {
  const [username, password] = [given.text('AUTH_USERNAME'), given.secret('AUTH_PASSWORD')];
  if (username !== undefined && password !== undefined) {
    const pair = { username, password };
    if (Buffer.byteLength(JSON.stringify(pair)) <= LOGIN_LIMIT) return pair;
    throw new OperatorError(
      `AUTH_USERNAME and AUTH_PASSWORD are too long: a login with them has more than ${LOGIN_LIMIT} bytes.`,
    );
  }
  if (username === password) return undefined;
  const missing = username === undefined ? 'AUTH_USERNAME' : 'AUTH_PASSWORD';
  throw new OperatorError(`${missing} must be set too: AUTH_USERNAME and AUTH_PASSWORD are one pair.`);
}

function readPreviousSecret(given: Given): string | undefined {
  const previous = given.secret('SECRET_TOKEN_PREVIOUS');
  if (previous !== undefined && given.secret('SECRET_TOKEN') === undefined) {
    throw new OperatorError('SECRET_TOKEN must be set too: SECRET_TOKEN_PREVIOUS signs no tokens.');
  }
  return previous;
}

/** Every address once the operator has set the pair and the secret, otherwise this machine only (rules 14, 16 and 25). */
function readHost(given: Given): string | undefined {
  const hasPair = readPair(given) !== undefined;
  const isGuarded = hasPair && given.secret('SECRET_TOKEN') !== undefined;
  const text = given.text('HOST');
  if (text === undefined) return isGuarded ? undefined : LOOPBACK;
  const host = addressOf(text);
  if (isGuarded || isLoopback(host)) return host;
  const missing = hasPair ? 'SECRET_TOKEN' : 'AUTH_USERNAME and AUTH_PASSWORD';
  throw new OperatorError(
    `HOST ${host} is reachable from other machines: set ${missing}, or use HOST=127.0.0.1.`,
  );
}

/** `localhost` stands for different addresses on different machines; every machine has 127.0.0.1. */
function addressOf(host: string): string {
  return host === 'localhost' ? LOOPBACK : host;
}

interface PortSetting {
  readonly port: number;
  /** Whether the operator set it. */
  readonly required: boolean;
}

/** By default the operations listener is on the port next to PORT, for this machine only. */
function readAdmin(given: Given): PortSetting {
  return portOf(given, 'ADMIN_PORT', 1, { PORT: SETTINGS.port.read(given) });
}

/** By default the page is on the second port after PORT. It searches, so it needs FIND. */
function readPage(given: Given): PortSetting | undefined {
  if (OFF.test(given.text('PAGE_PORT') ?? '')) return undefined;
  const [main, admin, find] = [SETTINGS.port.read(given), readAdmin(given).port, SETTINGS.find.read(given)];
  const page = portOf(given, 'PAGE_PORT', 2, { PORT: main, ADMIN_PORT: admin }, ', or off');
  if (page.required && !find) {
    throw new OperatorError(
      `PAGE_PORT ${page.port} needs FIND=on, because the page searches: set FIND=on, or PAGE_PORT=off.`,
    );
  }
  return find && (page.port !== admin || admin === 0) ? page : undefined;
}

/**
 * A port near PORT, unless it is set: after PORT, or before it where no port is left. If PORT is 0, the system chooses.
 * @param others other ports, by the names of their variables: this one must differ.
 */
function portOf(
  given: Given,
  name: string,
  distance: number,
  others: { readonly PORT: number; readonly [name: string]: number },
  orWord = '',
): PortSetting {
  const set = readNumber(given, name, 0, LAST_PORT, orWord);
  const [same] = Object.entries(others).find(([, port]) => port === set && port !== 0) ?? [];
  if (same !== undefined)
    throw new OperatorError(`${name} ${set} is the same as ${same}: choose another port.`);
  const { PORT: main } = others;
  const beside = main + distance <= LAST_PORT ? main + distance : main - distance;
  return { port: set ?? (main === 0 ? 0 : beside), required: set !== undefined };
}

/** @returns days; undefined if it is off. */
function readHistory(given: Given): number | 'forever' | undefined {
  const text = given.text('HISTORY') ?? '';
  if (OFF.test(text)) return undefined;
  if (/^forever$/i.test(text)) return 'forever';
  return readNumber(given, 'HISTORY', 1, MOST_DAYS_OF_HISTORY, ', forever or off') ?? DAYS_OF_HISTORY;
}

function readLibraryName(given: Given): string | undefined {
  const name = given.text('LIBRARY_NAME');
  const length = [...(name ?? '')].length;
  if (length <= LONGEST_NAME) return name;
  throw new OperatorError(`LIBRARY_NAME must have at most ${LONGEST_NAME} characters, not ${length}.`);
}

function readLogLevel(given: Given): LogLevel {
  const text = given.text('LOG_LEVEL') ?? 'info';
  const level = LOG_LEVELS.find((known) => known === text.toLowerCase());
  if (level !== undefined) return level;
  throw new OperatorError(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}, not "${text}".`);
}
