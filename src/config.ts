// Owns: the settings (rules 14, 16, 22, 25 to 27), read once into one frozen Config.
// Refuses: an invalid value, in one sentence that names the variable. It touches neither `process` nor the store;
// `stores/open.ts` interprets DB_URL.

import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { OperatorError } from './operator-error.ts';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface Config {
  readonly port: number;
  /** Address to listen on; undefined is every interface. */
  readonly host: string | undefined;
  readonly dbUrl: string;
  /** Where lists and searches are read if possible; undefined if everything is read where it is written. */
  readonly readUrl: string | undefined;
  readonly signingSecret: string;
  /** SECRET_TOKEN is not set, so the secret is random. */
  readonly randomSecret: boolean;
  /** The secret before the present one; tokens that it signed are accepted until they expire. */
  readonly previousSigningSecret: string | undefined;
  readonly username: string;
  readonly password: string;
  /** Whether books can be searched. */
  readonly find: boolean;
  /** Whether a change or a removal must have `If-Match`. */
  readonly requireIfMatch: boolean;
  /** Processes that serve together. */
  readonly workers: number;
  /** The address of the operations listener. */
  readonly admin: {
    readonly port: number;
    readonly host: string;
    /** The operator set the port, so the service must not start without it. */
    readonly required: boolean;
  };
  /** The port of the librarians' page, on `host`; undefined if there is no page. */
  readonly page:
    | {
        readonly port: number;
        /** As for `admin`. */
        readonly required: boolean;
      }
    | undefined;
  /** Origins whose pages may call the service from a browser. */
  readonly corsOrigins: readonly string[];
  /** Addresses or networks of the proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: LogLevel;
  /** Largest request body, in bytes. */
  readonly bodyLimit: number;
  /** Largest request body with many books, in bytes. */
  readonly bulkLimit: number;
  /** Largest request line and headers together, in bytes. */
  readonly headerLimit: number;
  /** The built-in pair logs in, so every reader of the documentation can. */
  readonly builtInCredentials: boolean;
  /** Sentences for the operator about settings that do not prevent the start. */
  readonly warnings: readonly string[];
}

/** How `--help` explains a variable, and how `config` shows its value. */
export interface Variable {
  readonly help: string;
  /** The default: a value, or words for it. */
  readonly absent: string;
  /** The value in effect, without secrets. The URLs of stores have none: `stores/open.ts` shows them. */
  readonly show?: (config: Config) => string;
}

/** A variable that is a whole number. */
interface NumberVariable extends Variable {
  readonly least: number;
  readonly most: number;
  /** A word that is also valid. */
  readonly word?: string;
}

const shownAs = (isSet: boolean) => (isSet ? '(set)' : '(none)');

/** Every variable, in the order in which they are shown: reading, `config` and `--help` follow this list. */
export const VARIABLES = {
  PORT: {
    help: 'port to listen on',
    absent: '8080',
    least: 0,
    most: 65_535,
    show: ({ port }) => String(port),
  },
  HOST: {
    help: 'address to listen on',
    absent:
      'this machine only, until AUTH_USERNAME, AUTH_PASSWORD and SECRET_TOKEN are set; then every address',
    show: ({ host }) => host ?? '(every address)',
  },
  DB_URL: {
    help: 'sqlite:<path> or postgres://user:password@host:port/database, several hosts as host:port,host:port',
    absent: 'sqlite:data/books.db',
  },
  DB_READ_URL: {
    help: 'postgres://… of a standby of DB_URL, which answers lists and searches while it is as new as the primary',
    absent: 'none',
  },
  SECRET_TOKEN: {
    help: 'secret that signs tokens',
    absent: 'random, new at every start',
    show: ({ randomSecret }) => (randomSecret ? '(random, new at every start)' : '(set)'),
  },
  SECRET_TOKEN_PREVIOUS: {
    help: 'the previous secret, whose tokens are accepted until they expire',
    absent: 'none',
    show: ({ previousSigningSecret }) => shownAs(previousSigningSecret !== undefined),
  },
  AUTH_USERNAME: {
    help: 'username for logging in',
    absent: 'admin',
    show: ({ username }) => (/\p{Cc}/u.test(username) ? JSON.stringify(username) : username),
  },
  AUTH_PASSWORD: {
    help: 'password for logging in',
    absent: 'password',
    show: ({ builtInCredentials, password }) => (builtInCredentials ? password : '(set)'),
  },
  WORKERS: {
    help: 'number of processes that serve together, to use as many cores',
    absent: '1',
    least: 1,
    most: 256,
    show: ({ workers }) => String(workers),
  },
  FIND: {
    help: 'on or off: whether books can be searched, which takes an index of about four times their size',
    absent: 'on',
    show: ({ find }) => (find ? 'on' : 'off'),
  },
  REQUIRE_IF_MATCH: {
    help: 'on or off: whether a change or a removal must say which state of the book it is for',
    absent: 'off',
    show: ({ requireIfMatch }) => (requireIfMatch ? 'on' : 'off'),
  },
  ADMIN_PORT: {
    help: 'port for operators: health, metrics, /docs',
    absent: 'PORT + 1',
    least: 0,
    most: 65_535,
    show: ({ admin }) => String(admin.port),
  },
  ADMIN_HOST: {
    help: 'address to listen on for ADMIN_PORT',
    absent: 'this machine only',
    show: ({ admin }) => admin.host,
  },
  PAGE_PORT: {
    help: 'port of the page for librarians, which is on HOST, too; off: no page',
    absent: 'PORT + 2, or off if FIND is off',
    least: 0,
    most: 65_535,
    word: 'off',
    show: ({ page }) => (page === undefined ? 'off' : String(page.port)),
  },
  CORS_ORIGINS: {
    help: 'origins whose pages may call the service from a browser',
    absent: 'none',
    show: ({ corsOrigins }) => corsOrigins.join(',') || '(none)',
  },
  TRUST_PROXY: {
    help: 'addresses or networks of proxies whose X-Forwarded-For is trusted',
    absent: 'none',
    show: ({ trustedProxies }) => trustedProxies.join(',') || '(none)',
  },
  LOG_LEVEL: {
    help: 'fatal, error, warn, info, debug, trace or silent',
    absent: 'info',
    show: ({ logLevel }) => logLevel,
  },
  BODY_LIMIT: {
    help: 'largest request body, in bytes',
    absent: '1048576',
    least: 1,
    most: 256 * 1024 ** 2,
    show: ({ bodyLimit }) => String(bodyLimit),
  },
  BULK_LIMIT: {
    help: 'largest request body with many books, in bytes',
    absent: '16777216',
    least: 1,
    most: 128 * 1024 ** 2,
    show: ({ bulkLimit }) => String(bulkLimit),
  },
  HEADER_LIMIT: {
    help: 'largest request line and headers together, in bytes',
    absent: '16384',
    least: 1024,
    most: 1024 ** 2,
    show: ({ headerLimit }) => String(headerLimit),
  },
} as const satisfies Readonly<Record<string, Variable | NumberVariable>>;

type Name = keyof typeof VARIABLES;
type NumberName = { [N in Name]: (typeof VARIABLES)[N] extends NumberVariable ? N : never }[Name];

/** Variables that may come from a file instead: `NAME_FILE` is the path of that file (rule 25). */
export const SECRETS = [
  'DB_URL',
  'DB_READ_URL',
  'SECRET_TOKEN',
  'SECRET_TOKEN_PREVIOUS',
  'AUTH_PASSWORD',
] as const;
type SecretName = (typeof SECRETS)[number];

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a file as bytes; throws as `fs.readFileSync` does. */
export type ReadFile = (path: string) => Uint8Array;

const LOOPBACK = '127.0.0.1';
const ADVISED_SECRET_BYTES = 32; // RFC 7518 section 3.2: an HS256 key is at least as long as its digest

/**
 * Reads the whole configuration.
 * @throws OperatorError if a variable is invalid.
 */
export function readConfig(env: Environment, readFile: ReadFile): Config {
  const username = readText(env, 'AUTH_USERNAME');
  const password = readSecret(env, readFile, 'AUTH_PASSWORD');
  if ((username === undefined) !== (password === undefined)) {
    const missing = username === undefined ? 'AUTH_USERNAME' : 'AUTH_PASSWORD';
    throw new OperatorError(`${missing} must be set too: AUTH_USERNAME and AUTH_PASSWORD are one pair.`);
  }
  const secret = readSecret(env, readFile, 'SECRET_TOKEN');
  const previousSecret = readSecret(env, readFile, 'SECRET_TOKEN_PREVIOUS');
  if (previousSecret !== undefined && secret === undefined) {
    throw new OperatorError('SECRET_TOKEN must be set too: SECRET_TOKEN_PREVIOUS signs no tokens.');
  }
  const host = readHost(env, username !== undefined && secret !== undefined);
  const port = readWholeNumber(env, 'PORT');

  if (!isLoopback(host)) {
    const missing = username === undefined ? 'AUTH_USERNAME and AUTH_PASSWORD' : 'SECRET_TOKEN';
    if (username === undefined || secret === undefined) {
      throw new OperatorError(
        `HOST ${host} is reachable from other machines: set ${missing}, or use HOST=127.0.0.1.`,
      );
    }
  }

  const warnings: string[] = [];
  if (username === undefined) {
    warnings.push(
      'AUTH_USERNAME and AUTH_PASSWORD are not set: the service accepts the built-in pair admin / password.',
    );
  }
  if (secret === undefined) {
    warnings.push(
      'SECRET_TOKEN is not set: tokens are signed with a random secret and become invalid when this process ends.',
    );
  } else if (Buffer.byteLength(secret) < ADVISED_SECRET_BYTES) {
    warnings.push(`SECRET_TOKEN is shorter than ${ADVISED_SECRET_BYTES} bytes: set a longer one.`);
  }

  const find = readFind(env);
  const admin = readAdmin(env, port);
  const page = readPage(env, port, admin, find);
  if (page === undefined && find && env.PAGE_PORT === undefined) {
    warnings.push(`ADMIN_PORT ${admin.port} is the default of PAGE_PORT: the service runs without the page.`);
  }

  return Object.freeze({
    port,
    host,
    dbUrl: readStoreUrl(env, readFile),
    readUrl: readReadUrl(env, readFile),
    signingSecret: secret ?? randomBytes(ADVISED_SECRET_BYTES).toString('base64url'),
    randomSecret: secret === undefined,
    previousSigningSecret: previousSecret,
    username: username ?? VARIABLES.AUTH_USERNAME.absent,
    password: password ?? VARIABLES.AUTH_PASSWORD.absent,
    workers: readWholeNumber(env, 'WORKERS'),
    find,
    requireIfMatch: readSwitch(env, 'REQUIRE_IF_MATCH'),
    admin,
    page,
    corsOrigins: readOrigins(env),
    trustedProxies: readTrustedProxies(env),
    logLevel: readLogLevel(env),
    bodyLimit: readWholeNumber(env, 'BODY_LIMIT'),
    bulkLimit: readWholeNumber(env, 'BULK_LIMIT'),
    headerLimit: readWholeNumber(env, 'HEADER_LIMIT'),
    builtInCredentials: username === undefined,
    warnings,
  });
}

/**
 * Reads the URL of the store, the only setting of commands that work on the store alone.
 * @throws OperatorError if the variable is invalid.
 */
export function readStoreUrl(env: Environment, readFile: ReadFile): string {
  return readSecret(env, readFile, 'DB_URL') ?? VARIABLES.DB_URL.absent;
}

/**
 * Reads the URL of the standby, undefined if it is not set.
 * @throws OperatorError if the variable is invalid.
 */
export function readReadUrl(env: Environment, readFile: ReadFile): string | undefined {
  return readSecret(env, readFile, 'DB_READ_URL');
}

/**
 * Reads the account and the secret of a service, for a command that calls it. A value that is not set is undefined.
 * @throws OperatorError if a variable is invalid.
 */
export function readAccount(
  env: Environment,
  readFile: ReadFile,
): Readonly<Record<'username' | 'password' | 'secret', string | undefined>> {
  return {
    username: readText(env, 'AUTH_USERNAME'),
    password: readSecret(env, readFile, 'AUTH_PASSWORD'),
    secret: readSecret(env, readFile, 'SECRET_TOKEN'),
  };
}

/** Whether only this machine can reach the address (undefined: every interface). */
export function isLoopback(host: string | undefined): boolean {
  return host === '::1' || (host !== undefined && isIP(host) === 4 && host.startsWith('127.'));
}

/** Rule 25: every address once the operator has set the pair and the secret, otherwise this machine only. */
function readHost(env: Environment, guarded: boolean): string | undefined {
  const host = readText(env, 'HOST');
  if (host === undefined) return guarded ? undefined : LOOPBACK;
  // The name stands for different addresses on different machines; every machine has 127.0.0.1.
  return host === 'localhost' ? LOOPBACK : host;
}

/** By default the operations listener is on the port next to PORT, for this machine only. */
function readAdmin(env: Environment, port: number): Config['admin'] {
  const adminPort = readWholeNumber(env, 'ADMIN_PORT', portBeside(port, 1));
  if (adminPort === port && port !== 0) {
    throw new OperatorError(`ADMIN_PORT ${adminPort} is the same as PORT: choose another port.`);
  }
  const host = readText(env, 'ADMIN_HOST') ?? LOOPBACK;
  return {
    port: adminPort,
    host: host === 'localhost' ? LOOPBACK : host,
    required: env.ADMIN_PORT !== undefined,
  };
}

/** By default the page is on the second port after PORT. It searches, so it needs FIND. */
function readPage(env: Environment, port: number, admin: Config['admin'], find: boolean): Config['page'] {
  const given = readText(env, 'PAGE_PORT');
  if (given === 'off' || given === 'false') return undefined; // YAML turns one into the other
  if (given === undefined) {
    const beside = portBeside(port, 2);
    const isFree = beside !== admin.port || beside === 0;
    return find && isFree ? { port: beside, required: false } : undefined;
  }
  const pagePort = readWholeNumber(env, 'PAGE_PORT');
  if (!find) {
    throw new OperatorError(
      `PAGE_PORT ${pagePort} needs FIND=on, because the page searches: set FIND=on, or PAGE_PORT=off.`,
    );
  }
  const other = pagePort === port ? 'PORT' : 'ADMIN_PORT';
  if (pagePort !== 0 && (pagePort === port || pagePort === admin.port)) {
    throw new OperatorError(`PAGE_PORT ${pagePort} is the same as ${other}: choose another port.`);
  }
  return { port: pagePort, required: true };
}

/** A port near another one: after it, or before it where no port is left. The system chooses those of port 0. */
function portBeside(port: number, distance: number): number {
  if (port === 0) return 0;
  return port + distance <= 65_535 ? port + distance : port - distance;
}

/** Origins as browsers spell them, such as https://books.example.org, separated by commas. */
function readOrigins(env: Environment): readonly string[] {
  const origins = readText(env, 'CORS_ORIGINS')?.split(',') ?? [];
  return origins.map((text) => {
    const origin = text.trim();
    if (!/^https?:/.test(origin) || !URL.canParse(origin) || new URL(origin).origin !== origin) {
      throw new OperatorError(
        `CORS_ORIGINS must list origins without a path, such as https://books.example.org, not "${origin}".`,
      );
    }
    return origin;
  });
}

/** Addresses or networks such as 10.0.0.0/8, separated by commas. */
function readTrustedProxies(env: Environment): readonly string[] {
  const proxies = readText(env, 'TRUST_PROXY')?.split(',') ?? [];
  return proxies.map((text) => {
    const proxy = text.trim();
    if (!isNetwork(proxy)) {
      throw new OperatorError(
        `TRUST_PROXY must list addresses or networks such as 127.0.0.1,10.0.0.0/8, not "${proxy}".`,
      );
    }
    return proxy;
  });
}

function isNetwork(text: string): boolean {
  const [, address = '', prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  return bits > 0 && (prefix === undefined || (Number(prefix) > 0 && Number(prefix) <= bits));
}

/**
 * Reads FIND, also for commands that work on the store alone.
 * @throws OperatorError if the variable is invalid.
 */
export function readFind(env: Environment): boolean {
  return readSwitch(env, 'FIND');
}

/** YAML files turn `on` and `off` without quotation marks into `true` and `false`. */
function readSwitch(env: Environment, name: 'FIND' | 'REQUIRE_IF_MATCH'): boolean {
  const text = readText(env, name) ?? VARIABLES[name].absent;
  if (text === 'on' || text === 'true') return true;
  if (text === 'off' || text === 'false') return false;
  throw new OperatorError(`${name} must be on or off, not "${text}".`);
}

function readLogLevel(env: Environment): LogLevel {
  const text = readText(env, 'LOG_LEVEL') ?? VARIABLES.LOG_LEVEL.absent;
  const level = LOG_LEVELS.find((known) => known === text);
  if (level === undefined) {
    throw new OperatorError(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}, not "${text}".`);
  }
  return level;
}

function readWholeNumber(env: Environment, name: NumberName, absent?: number): number {
  const { least, most, word, absent: text }: NumberVariable = VARIABLES[name];
  const given = readText(env, name);
  if (given === undefined) return absent ?? Number(text);
  const value = Number(given);
  if (!/^\d{1,10}$/.test(given) || value < least || value > most) {
    const orWord = word === undefined ? '' : `, or ${word}`;
    throw new OperatorError(
      `${name} must be a whole number from ${least} to ${most}${orWord}, not "${given}".`,
    );
  }
  return value;
}

function readText(env: Environment, name: Name | `${SecretName}_FILE`): string | undefined {
  const text = env[name];
  if (text === '') {
    throw new OperatorError(`${name} is set but empty: give it a value, or leave it out.`);
  }
  return text;
}

/** A value from `NAME` or from the file that `NAME_FILE` names, never from both (rule 25). */
function readSecret(env: Environment, readFile: ReadFile, name: SecretName): string | undefined {
  const text = readText(env, name);
  const path = readText(env, `${name}_FILE`);
  if (path === undefined) return text;
  if (text !== undefined) throw new OperatorError(`${name} and ${name}_FILE are both set: keep one.`);

  let content: string;
  try {
    content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFile(path));
  } catch (error) {
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : (error as Error).message;
    throw new OperatorError(`${name}_FILE cannot be read: ${reason}.`);
  }
  const value = content.replace(/\r?\n$/, '');
  if (value === '') throw new OperatorError(`${name}_FILE names an empty file: put the value into it.`);
  return value;
}
