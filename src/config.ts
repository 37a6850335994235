// Owns: what the operator may set (rules 14, 16, 22, 25 to 27), read once into one frozen Config.
// Refuses, in one sentence that names the variable: everything that cannot be meant. Touches neither
// `process` nor the store; what DB_URL means is for `stores/open.ts` to say.

import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { Refusal } from './refusal.ts';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface Config {
  readonly port: number;
  /** Address to listen on; undefined is every interface. */
  readonly host: string | undefined;
  readonly dbUrl: string;
  readonly signingSecret: string;
  /** Nobody set the secret, so nobody else can know it. */
  readonly randomSecret: boolean;
  /** The secret before the present one; the tokens that it signed live out their time. */
  readonly previousSigningSecret: string | undefined;
  readonly username: string;
  readonly password: string;
  /** Processes that serve together. */
  readonly workers: number;
  /** Where the operations listener is. */
  readonly admin: {
    readonly port: number;
    readonly host: string;
    /** The port was asked for, so that there is no going on without it. */
    readonly required: boolean;
  };
  /** Origins whose pages may call the service from a browser. */
  readonly corsOrigins: readonly string[];
  /** Proxies, as addresses or networks, that are believed when they say whom a request comes from. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: LogLevel;
  /** Bytes of one request's body. */
  readonly bodyLimit: number;
  /** Bytes of one request's line and headers. */
  readonly headerLimit: number;
  /** The built-in credential pair serves, so anyone who read the documentation can log in. */
  readonly builtInCredentials: boolean;
  /** What the operator should know, though it does not stop the start. */
  readonly warnings: readonly string[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a file as bytes; throws as `fs.readFileSync` does. */
export type ReadFile = (path: string) => Uint8Array;

const BUILT_IN_USERNAME = 'admin';
const BUILT_IN_PASSWORD = 'password';
const LOOPBACK = '127.0.0.1';
const ADVISED_SECRET_BYTES = 32; // RFC 7518 section 3.2: an HS256 key is no shorter than its digest

/**
 * Reads the whole configuration.
 * @throws Refusal when a variable cannot be meant as it stands.
 */
export function readConfig(env: Environment, readFile: ReadFile): Config {
  const username = readText(env, 'AUTH_USERNAME');
  const password = readSecret(env, readFile, 'AUTH_PASSWORD');
  if ((username === undefined) !== (password === undefined)) {
    const missing = username === undefined ? 'AUTH_USERNAME' : 'AUTH_PASSWORD';
    throw new Refusal(`${missing} must be set too: AUTH_USERNAME and AUTH_PASSWORD are one pair.`);
  }
  const secret = readSecret(env, readFile, 'SECRET_TOKEN');
  const previousSecret = readSecret(env, readFile, 'SECRET_TOKEN_PREVIOUS');
  if (previousSecret !== undefined && secret === undefined) {
    throw new Refusal('SECRET_TOKEN must be set too: SECRET_TOKEN_PREVIOUS is the one before it.');
  }
  const host = readHost(env, username !== undefined && secret !== undefined);
  const port = readWholeNumber(env, 'PORT', 8080, 0, 65_535);

  if (!isLoopback(host)) {
    const missing = username === undefined ? 'AUTH_USERNAME and AUTH_PASSWORD' : 'SECRET_TOKEN';
    if (username === undefined || secret === undefined) {
      throw new Refusal(
        `HOST ${host} can be reached from other machines, so ${missing} must be set; until then only HOST=127.0.0.1 will do.`,
      );
    }
  }

  const warnings: string[] = [];
  if (username === undefined) {
    warnings.push('AUTH_USERNAME and AUTH_PASSWORD are not set: the built-in pair admin / password logs in.');
  }
  if (secret === undefined) {
    warnings.push(
      'SECRET_TOKEN is not set: tokens are signed with a random secret and end with this process.',
    );
  } else if (Buffer.byteLength(secret) < ADVISED_SECRET_BYTES) {
    warnings.push(`SECRET_TOKEN is shorter than ${ADVISED_SECRET_BYTES} bytes: a longer one is safer.`);
  }

  return Object.freeze({
    port,
    host,
    dbUrl: readStoreUrl(env, readFile),
    signingSecret: secret ?? randomBytes(ADVISED_SECRET_BYTES).toString('base64url'),
    randomSecret: secret === undefined,
    previousSigningSecret: previousSecret,
    username: username ?? BUILT_IN_USERNAME,
    password: password ?? BUILT_IN_PASSWORD,
    workers: readWholeNumber(env, 'WORKERS', 1, 1, 256),
    admin: readAdmin(env, port),
    corsOrigins: readOrigins(env),
    trustedProxies: readTrustedProxies(env),
    logLevel: readLogLevel(env),
    bodyLimit: readWholeNumber(env, 'BODY_LIMIT', 1024 * 1024, 1, 256 * 1024 ** 2),
    headerLimit: readWholeNumber(env, 'HEADER_LIMIT', 16 * 1024, 1024, 1024 ** 2),
    builtInCredentials: username === undefined,
    warnings,
  });
}

/**
 * Reads where the books are, all that a command needs which works on the store alone.
 * @throws Refusal when the variable cannot be meant as it stands.
 */
export function readStoreUrl(env: Environment, readFile: ReadFile): string {
  return readSecret(env, readFile, 'DB_URL') ?? 'sqlite:data/books.db';
}

/** Whether only this machine can reach the address (undefined: every interface). */
export function isLoopback(host: string | undefined): boolean {
  return host === '::1' || (host !== undefined && isIP(host) === 4 && host.startsWith('127.'));
}

/** Rule 25: everywhere once the operator has taken charge of who gets in, else this machine only. */
function readHost(env: Environment, guarded: boolean): string | undefined {
  const host = readText(env, 'HOST');
  if (host === undefined) return guarded ? undefined : LOOPBACK;
  // Which address the name stands for differs between machines; this one is on all of them.
  return host === 'localhost' ? LOOPBACK : host;
}

/** The operations listener is beside the service's port, and for this machine only, unless told otherwise. */
function readAdmin(env: Environment, port: number): Config['admin'] {
  const beside = port === 0 ? 0 : port < 65_535 ? port + 1 : port - 1;
  const adminPort = readWholeNumber(env, 'ADMIN_PORT', beside, 0, 65_535);
  if (adminPort === port && port !== 0) {
    throw new Refusal(`ADMIN_PORT ${adminPort} is PORT as well: they must differ.`);
  }
  const host = readText(env, 'ADMIN_HOST') ?? LOOPBACK;
  return {
    port: adminPort,
    host: host === 'localhost' ? LOOPBACK : host,
    required: env.ADMIN_PORT !== undefined,
  };
}

/** Origins as browsers spell them, such as https://books.example.org, a comma between two. */
function readOrigins(env: Environment): readonly string[] {
  const origins = readText(env, 'CORS_ORIGINS')?.split(',') ?? [];
  return origins.map((text) => {
    const origin = text.trim();
    if (!/^https?:/.test(origin) || !URL.canParse(origin) || new URL(origin).origin !== origin) {
      throw new Refusal(
        `CORS_ORIGINS must list origins such as https://books.example.org, without a path; "${origin}" is none.`,
      );
    }
    return origin;
  });
}

/** Addresses or networks such as 10.0.0.0/8, a comma between two. */
function readTrustedProxies(env: Environment): readonly string[] {
  const proxies = readText(env, 'TRUST_PROXY')?.split(',') ?? [];
  return proxies.map((text) => {
    const proxy = text.trim();
    if (!isNetwork(proxy)) {
      throw new Refusal(
        `TRUST_PROXY must list addresses or networks such as 127.0.0.1,10.0.0.0/8; "${proxy}" is none.`,
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

function readLogLevel(env: Environment): LogLevel {
  const text = readText(env, 'LOG_LEVEL') ?? 'info';
  const level = LOG_LEVELS.find((known) => known === text);
  if (level === undefined) {
    throw new Refusal(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}, not "${text}".`);
  }
  return level;
}

function readWholeNumber(
  env: Environment,
  name: string,
  absent: number,
  least: number,
  most: number,
): number {
  const text = readText(env, name);
  if (text === undefined) return absent;
  const value = Number(text);
  if (!/^\d{1,10}$/.test(text) || value < least || value > most) {
    throw new Refusal(`${name} must be a whole number from ${least} to ${most}, not "${text}".`);
  }
  return value;
}

function readText(env: Environment, name: string): string | undefined {
  const text = env[name];
  if (text === '') {
    throw new Refusal(`${name} is set but empty: give it a value, or leave it out.`);
  }
  return text;
}

/** A value that may be given in place (`NAME`) or as a file (`NAME_FILE`), never both (rule 25). */
function readSecret(env: Environment, readFile: ReadFile, name: string): string | undefined {
  const text = readText(env, name);
  const path = readText(env, `${name}_FILE`);
  if (path === undefined) return text;
  if (text !== undefined) throw new Refusal(`${name} and ${name}_FILE are both set: keep one.`);

  let content: string;
  try {
    content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFile(path));
  } catch (error) {
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : (error as Error).message;
    throw new Refusal(`${name}_FILE cannot be read: ${reason}.`);
  }
  const value = content.replace(/\r?\n$/, '');
  if (value === '') throw new Refusal(`${name}_FILE names an empty file: put the value into it.`);
  return value;
}
