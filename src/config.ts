// Owns: the settings (rules 14, 16, 22, 25 to 27), each in one place, read once into one frozen Config.
// Does not: accept an invalid value: it refuses it in one sentence that names the variable. It touches neither
// `process` nor the store; `stores/open.ts` interprets DB_URL.

import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { LOGIN_LIMIT } from './auth/credentials.ts';
import { reasonOf } from './error-words.ts';
import { assertWrittenOut } from './final-path.ts';
import { nearest } from './nearest.ts';
import { OperatorError } from './operator-error.ts';

/** Each of them also shows those before it, but `silent` shows none. */
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The pair that logs in until an operator sets another one. */
const BUILT_IN = { username: 'admin', password: 'password' } as const;

const LOOPBACK = '127.0.0.1';
const ADVISED_SECRET_BYTES = 32; // RFC 7518 section 3.2: an HS256 key is at least as long as its digest
const LAST_PORT = 65_535;
const MEBIBYTE = 1024 ** 2;

/** A variable. Its texts have code in backticks. */
export interface Setting<Value = unknown> {
  readonly name: string;
  readonly help: string;
  /** The default: a value, or words for it. */
  readonly absent: string;
  /** @throws OperatorError if the value is invalid. */
  readonly read: (given: Given) => Value;
  /** The value in effect, without secrets. The URLs of stores have none: `stores/open.ts` shows them. */
  show?(value: Value, isSet: boolean): string;
}

/** Every setting, in the order in which `config` and `--help` show them. */
export const SETTINGS = {
  port: wholeNumber('PORT', 'port to listen on', 8080, 0, LAST_PORT),
  /** Undefined is every interface. */
  host: setting(
    'HOST',
    'address to listen on',
    'this machine only, until `AUTH_USERNAME`, `AUTH_PASSWORD` and `SECRET_TOKEN` are set; then every address',
    readHost,
    (host) => host ?? '(every address)',
  ),
  dbUrl: setting(
    'DB_URL',
    '`sqlite:<path>` or `postgres://user:password@host:port/database`, several hosts as `host:port,host:port`',
    '`sqlite:data/books.db`',
    (given) => given.text('DB_URL') ?? 'sqlite:data/books.db',
  ),
  readUrl: setting(
    'DB_READ_URL',
    '`postgres://…` of a standby of `DB_URL`, which answers lists and searches while it is as new as the primary',
    'none',
    (given) => given.text('DB_READ_URL'),
  ),
  signingSecret: setting(
    'SECRET_TOKEN',
    'secret that signs tokens; 32 bytes or more are advised',
    'random, new at every start',
    (given) => given.text('SECRET_TOKEN') ?? randomBytes(ADVISED_SECRET_BYTES).toString('base64url'),
    (_, isSet) => (isSet ? '(set)' : '(random, new at every start)'),
  ),
  previousSigningSecret: setting(
    'SECRET_TOKEN_PREVIOUS',
    'the previous secret, whose tokens are accepted until they expire',
    'none',
    readPreviousSecret,
    (_, isSet) => (isSet ? '(set)' : '(none)'),
  ),
  username: setting(
    'AUTH_USERNAME',
    'username for logging in',
    `\`${BUILT_IN.username}\``,
    (given) => readPair(given)?.username ?? BUILT_IN.username,
    String,
  ),
  password: setting(
    'AUTH_PASSWORD',
    'password for logging in',
    `\`${BUILT_IN.password}\``,
    (given) => readPair(given)?.password ?? BUILT_IN.password,
    (_, isSet) => (isSet ? '(set)' : BUILT_IN.password),
  ),
  workers: wholeNumber('WORKERS', 'number of processes that serve together, to use as many cores', 1, 1, 256),
  find: onOrOff(
    'FIND',
    'whether books can be searched, which takes an index of about 3.5 times their size',
    'on',
  ),
  requireIfMatch: onOrOff(
    'REQUIRE_IF_MATCH',
    'whether a change or a removal must name the state of the book',
    'off',
  ),
  /** If the operator set the port, the service must not start without it. */
  admin: setting(
    'ADMIN_PORT',
    'port for operators: `/livez`, `/readyz`, `/metrics`, `/openapi.json`, `/docs`, `/manual`',
    '`PORT` + 1, or none if that is in use',
    readAdmin,
    ({ port }) => String(port),
  ),
  adminHost: setting(
    'ADMIN_HOST',
    'address to listen on for `ADMIN_PORT`',
    'this machine only',
    (given) => addressOf(given.text('ADMIN_HOST') ?? LOOPBACK),
    String,
  ),
  /** Undefined if there is no page. */
  page: setting(
    'PAGE_PORT',
    'port of the page for librarians, which is also on `HOST`; `off`: no page',
    '`PORT` + 2, or none if that is in use or `FIND` is off',
    readPage,
    (page) => (page === undefined ? 'off' : String(page.port)),
  ),
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
  logLevel: setting(
    'LOG_LEVEL',
    '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
    '`info`',
    readLogLevel,
    String,
  ),
  bodyLimit: wholeNumber('BODY_LIMIT', 'largest request body, in bytes', MEBIBYTE, 1, 256 * MEBIBYTE),
  bulkLimit: wholeNumber(
    'BULK_LIMIT',
    'largest body with many books, in bytes',
    16 * MEBIBYTE,
    1,
    128 * MEBIBYTE,
  ),
  headerLimit: wholeNumber(
    'HEADER_LIMIT',
    'largest request line and headers, in bytes',
    16_384,
    1024,
    MEBIBYTE,
  ),
} as const;

type Settings = { readonly [Key in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Key]['read']> };

export interface Config extends Settings {
  /** SECRET_TOKEN is not set, so the secret is random. */
  readonly randomSecret: boolean;
  /** The built-in pair logs in, so every reader of the documentation can. */
  readonly builtInCredentials: boolean;
  /** Sentences for the operator about settings that do not prevent the start. */
  readonly warnings: readonly string[];
}

/** Variables that may come from a file instead: `NAME_FILE` is the path of that file (rule 25). */
export const SECRETS = 'DB_URL DB_READ_URL SECRET_TOKEN SECRET_TOKEN_PREVIOUS AUTH_PASSWORD'.split(' ');

/** Keys, of which only the bytes matter: `openssl rand -base64 64` prints one in two lines. */
const MAY_HAVE_LINES = ['SECRET_TOKEN', 'SECRET_TOKEN_PREVIOUS'];

/** Names that other programs give to one of our variables. */
const NAMES_ELSEWHERE: Readonly<Record<string, string>> = { DATABASE_URL: 'DB_URL', DB_URI: 'DB_URL' };

/** Variables of other programs with fewer letters may be one slip away from ours. */
const SHORTEST_SLIP = 6;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a file as bytes; throws as `fs.readFileSync` does. */
export type ReadFile = (path: string) => Uint8Array;

/** What an operator has set. */
class Given {
  readonly #env: Environment;
  readonly #readFile: ReadFile;
  /** The values of files that have been read: a pipe can be read once. */
  readonly #read = new Map<string, string>();

  constructor(env: Environment, readFile: ReadFile) {
    this.#env = env;
    this.#readFile = readFile;
  }

  /** The value of a variable, of a secret one also from the file that `NAME_FILE` names, never from both (rule 25). */
  text(name: string): string | undefined {
    const text = this.#env[name];
    if (text === '') throw new OperatorError(`${name} is set but empty: give it a value, or leave it out.`);
    const path = SECRETS.includes(name) ? this.text(`${name}_FILE`) : undefined;
    if (path === undefined) return text === undefined ? undefined : plain(text, name, name);
    if (text !== undefined) throw new OperatorError(`${name} and ${name}_FILE are both set: keep one.`);
    const value = this.#read.get(name) ?? plain(this.#readSecret(name, path), name, `${name}_FILE`);
    this.#read.set(name, value);
    return value;
  }

  #readSecret(name: string, path: string): string {
    assertWrittenOut(path, `${name}_FILE`);
    let content: string;
    try {
      content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.#readFile(path));
    } catch (error) {
      const reason = error instanceof TypeError ? 'it is not UTF-8 text' : reasonOf(error);
      throw new OperatorError(`${name}_FILE cannot be read: ${reason}.`);
    }
    const value = content.replace(/\r?\n$/, '');
    if (value === '') throw new OperatorError(`${name}_FILE names an empty file: put the value into it.`);
    return value;
  }
}

const CHARACTERS: Readonly<Record<string, string>> = {
  '\t': 'a tab',
  '\n': 'a line break',
  '\r': 'a carriage return',
  ' ': 'a blank',
};

/**
 * Refuses what programs leave of an env-file's line in a value: quotation marks, a carriage return, blanks.
 * @param source the variable that the operator can correct.
 * @returns the value.
 */
function plain(value: string, name: string, source: string): string {
  if (/^\p{Quotation_Mark}.*\p{Quotation_Mark}$/su.test(value)) {
    throw new OperatorError(
      `${source} has quotation marks around its value, which would be part of it: remove them.`,
    );
  }
  const lines = MAY_HAVE_LINES.includes(name) ? value.replaceAll(/\r?\n(?=.)/gs, '') : value;
  if (value.startsWith(`${name}=`)) {
    throw new OperatorError(`${source} has the value ${name}=…: leave out the name.`);
  }
  const position = lines.search(/^\s|[[\p{Cc}\p{Cf}]--[\u200c\u200d]]|\s$/v); // joiners are parts of words
  if (position === -1) return value;
  const found = lines.charAt(position);
  const end = position === lines.length - 1 ? 'at the end of' : 'in';
  const place = position === 0 ? 'at the beginning of' : end;
  const code = found.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  throw new OperatorError(
    `${source} has ${CHARACTERS[found] ?? 'the character'} (U+${code}) ${place} its value: remove it.`,
  );
}

/**
 * Reads the whole configuration.
 * @throws OperatorError if a variable is invalid.
 */
export function readConfig(env: Environment, readFile: ReadFile): Config {
  const given = new Given(env, readFile);
  const entries = Object.entries(SETTINGS).map(([key, { read }]) => [key, read(given)]);
  const settings: Settings = Object.fromEntries(entries);
  const { admin, find, page, signingSecret } = settings;
  const builtInCredentials = readPair(given) === undefined;
  const randomSecret = given.text('SECRET_TOKEN') === undefined;
  const warnings = nearMisses(env);
  if (builtInCredentials) {
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
  return Object.freeze({ ...settings, randomSecret, builtInCredentials, warnings });
}

/** Sentences about variables that are set, and that nothing reads, although their names are nearly those of settings. */
export function nearMisses(env: Environment): string[] {
  const names = Object.values<Setting>(SETTINGS).map(({ name }) => name);
  const known = [...names, ...SECRETS.map((name) => `${name}_FILE`)];
  return Object.keys(env).flatMap((name) => {
    if (known.includes(name)) return [];
    const ofFile = name.endsWith('_FILE') ? names.find((known) => `${known}_FILE` === name) : undefined;
    if (ofFile !== undefined)
      return [`${name} is ignored: only a secret may come from a file. Set ${ofFile}.`];
    const meant = NAMES_ELSEWHERE[name] ?? (name.length < SHORTEST_SLIP ? undefined : nearest(name, known));
    return meant === undefined || env[meant] !== undefined
      ? []
      : [`${name} is ignored: set ${meant} instead.`];
  });
}

/**
 * Reads one setting, for a command that needs no other.
 * @throws OperatorError if the variable is invalid.
 */
export function readSetting<Key extends keyof Settings>(
  key: Key,
  env: Environment,
  readFile: ReadFile,
): Settings[Key] {
  return SETTINGS[key].read(new Given(env, readFile)) as Settings[Key];
}

/**
 * Reads the account and the secret of a service, for a command that calls it. A value that is not set is undefined.
 * @throws OperatorError if a variable is invalid.
 */
export function readAccount(
  env: Environment,
  readFile: ReadFile,
): Readonly<Record<'username' | 'password' | 'secret', string | undefined>> {
  const given = new Given(env, readFile);
  const [username, password] = [given.text('AUTH_USERNAME'), given.text('AUTH_PASSWORD')];
  return { username, password, secret: given.text('SECRET_TOKEN') };
}

/** Whether only this machine can reach the address (undefined: every interface). */
export function isLoopback(host: string | undefined): boolean {
  return host === '::1' || (host !== undefined && isIP(host) === 4 && host.startsWith('127.'));
}

function setting<Value>(
  name: string,
  help: string,
  absent: string,
  read: (given: Given) => Value,
  show?: (value: Value, isSet: boolean) => string,
): Setting<Value> {
  return { name, help, absent, read, ...(show && { show }) };
}

function wholeNumber(
  name: string,
  help: string,
  absent: number,
  least: number,
  most: number,
): Setting<number> {
  const read = (given: Given) => readNumber(given, name, least, most) ?? absent;
  return setting(name, help, `\`${absent}\``, read, String);
}

function readNumber(
  given: Given,
  name: string,
  least: number,
  most: number,
  orWord = '',
): number | undefined {
  const text = given.text(name);
  const value = Number(text);
  if (text !== undefined && (!/^\d{1,10}$/.test(text) || value < least || value > most)) {
    throw new OperatorError(
      `${name} must be a whole number from ${least} to ${most}${orWord}, not "${text}".`,
    );
  }
  return text === undefined ? undefined : value;
}

/**
 * Reads `on` and `off` in any case, and `true` and `false`, into which YAML files turn them without quotation marks.
 * @returns undefined for any other text.
 */
function switchOf(text: string): boolean | undefined {
  if (/^(on|true)$/i.test(text)) return true;
  return /^(off|false)$/i.test(text) ? false : undefined;
}

function onOrOff(name: string, help: string, absent: 'on' | 'off'): Setting<boolean> {
  const read = (given: Given) => {
    const text = given.text(name) ?? absent;
    const isOn = switchOf(text);
    if (isOn === undefined) throw new OperatorError(`${name} must be on or off, not "${text}".`);
    return isOn;
  };
  return setting(name, `\`on\` or \`off\`: ${help}`, `\`${absent}\``, read, (isOn) => (isOn ? 'on' : 'off'));
}

/** A list that is separated by commas. */
function list(
  name: string,
  help: string,
  absent: string,
  what: string,
  isValid: (item: string) => boolean,
): Setting<readonly string[]> {
  const read = (given: Given) => {
    const items =
      given
        .text(name)
        ?.split(',')
        .map((item) => item.trim()) ?? [];
    const wrong = items.find((item) => !isValid(item));
    if (wrong !== undefined) throw new OperatorError(`${name} must list ${what}, not "${wrong}".`);
    return items;
  };
  return setting(name, help, absent, read, (items) => items.join(',') || '(none)');
}

function isNetwork(text: string): boolean {
  const [, address = '', prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  return bits > 0 && (prefix === undefined || (Number(prefix) > 0 && Number(prefix) <= bits));
}

/** @returns undefined if the built-in pair logs in. */
function readPair(given: Given): { readonly username: string; readonly password: string } | undefined {
  const [username, password] = [given.text('AUTH_USERNAME'), given.text('AUTH_PASSWORD')];
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
  const previous = given.text('SECRET_TOKEN_PREVIOUS');
  if (previous !== undefined && given.text('SECRET_TOKEN') === undefined) {
    throw new OperatorError('SECRET_TOKEN must be set too: SECRET_TOKEN_PREVIOUS signs no tokens.');
  }
  return previous;
}

/** Every address once the operator has set the pair and the secret, otherwise this machine only (rules 14, 16 and 25). */
function readHost(given: Given): string | undefined {
  const hasPair = readPair(given) !== undefined;
  const isGuarded = hasPair && given.text('SECRET_TOKEN') !== undefined;
  const text = given.text('HOST');
  if (text === undefined) return isGuarded ? undefined : LOOPBACK;
  const host = addressOf(text);
  if (isGuarded || isLoopback(host)) return host;
  const missing = hasPair ? 'SECRET_TOKEN' : 'AUTH_USERNAME and AUTH_PASSWORD';
  throw new OperatorError(
    `HOST ${host} is reachable from other machines: set ${missing}, or use HOST=127.0.0.1.`,
  );
}

/** The name stands for different addresses on different machines; every machine has 127.0.0.1. */
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
  const main = SETTINGS.port.read(given);
  const set = readNumber(given, 'ADMIN_PORT', 0, LAST_PORT);
  if (set === main && main !== 0) {
    throw new OperatorError(`ADMIN_PORT ${set} is the same as PORT: choose another port.`);
  }
  return { port: set ?? portBeside(main, 1), required: set !== undefined };
}

/** By default the page is on the second port after PORT. It searches, so it needs FIND. */
function readPage(given: Given): PortSetting | undefined {
  const text = given.text('PAGE_PORT');
  if (text !== undefined && switchOf(text) === false) return undefined;
  const [main, admin, find] = [SETTINGS.port.read(given), readAdmin(given).port, SETTINGS.find.read(given)];
  const port = readNumber(given, 'PAGE_PORT', 0, LAST_PORT, ', or off');
  if (port === undefined) {
    const beside = portBeside(main, 2);
    const isFree = beside !== admin || beside === 0;
    return find && isFree ? { port: beside, required: false } : undefined;
  }
  if (!find) {
    throw new OperatorError(
      `PAGE_PORT ${port} needs FIND=on, because the page searches: set FIND=on, or PAGE_PORT=off.`,
    );
  }
  if (port !== 0 && (port === main || port === admin)) {
    const other = port === main ? 'PORT' : 'ADMIN_PORT';
    throw new OperatorError(`PAGE_PORT ${port} is the same as ${other}: choose another port.`);
  }
  return { port, required: true };
}

/** A port near another one: after it, or before it where no port is left. The system chooses those of port 0. */
function portBeside(port: number, distance: number): number {
  if (port === 0) return 0;
  return port + distance <= 65_535 ? port + distance : port - distance;
}

function readLogLevel(given: Given): LogLevel {
  const text = given.text('LOG_LEVEL') ?? 'info';
  const level = LOG_LEVELS.find((known) => known === text.toLowerCase());
  if (level !== undefined) return level;
  throw new OperatorError(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}, not "${text}".`);
}
