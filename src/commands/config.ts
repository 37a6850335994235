// Owns: `config`. The configuration in effect, without its secrets, or what is wrong with it.

import { styleText } from 'node:util';
import { type Config, type Environment, readConfig } from '../config.ts';
import { readSecretFile } from '../secret-file.ts';
import { describeStore, readDbUrl } from '../stores/open.ts';
import type { Surroundings } from './command.ts';

export const HELP = `Usage: book-catalogue config

Shows every variable with the value in effect and where that comes from; secrets are only said to be set.
In a pipe, a line each: NAME=value. Ends with 1 and one sentence when the service could not start with it.
Opens neither the store nor a port.
`;

export async function run({ env, stdout, stderr }: Surroundings): Promise<number> {
  const config = readConfig(env, readSecretFile);
  await readDbUrl(config.dbUrl);
  const settings = Object.entries(describe(config));
  if (stdout.isTTY) {
    const width = (column: readonly string[]) => Math.max(...column.map((text) => text.length));
    const names = width(settings.map(([name]) => name));
    const values = width(settings.map(([, value]) => value));
    for (const [name, value] of settings) {
      const source = styleText('dim', sourceOf(env, name), { stream: stdout });
      stdout.write(`${name.padEnd(names)}  ${value.padEnd(values)}  ${source}\n`);
    }
  } else {
    for (const [name, value] of settings) stdout.write(`${name}=${value}\n`);
  }
  for (const warning of config.warnings) stderr.write(`${warning}\n`);
  return 0;
}

function describe(config: Config): Readonly<Record<string, string>> {
  const secret = (set: boolean) => (set ? '(set)' : '(none)');
  return {
    PORT: String(config.port),
    HOST: config.host ?? '(every address)',
    DB_URL: describeStore(config.dbUrl),
    SECRET_TOKEN: config.randomSecret ? '(random, new at every start)' : '(set)',
    SECRET_TOKEN_PREVIOUS: secret(config.previousSigningSecret !== undefined),
    AUTH_USERNAME: /\p{Cc}/u.test(config.username) ? JSON.stringify(config.username) : config.username,
    AUTH_PASSWORD: config.builtInCredentials ? config.password : '(set)',
    WORKERS: String(config.workers),
    ADMIN_PORT: String(config.admin.port),
    ADMIN_HOST: config.admin.host,
    CORS_ORIGINS: config.corsOrigins.join(',') || '(none)',
    TRUST_PROXY: config.trustedProxies.join(',') || '(none)',
    LOG_LEVEL: config.logLevel,
    BODY_LIMIT: String(config.bodyLimit),
    HEADER_LIMIT: String(config.headerLimit),
  };
}

function sourceOf(env: Environment, name: string): string {
  if (env[name] !== undefined) return 'environment';
  return env[`${name}_FILE`] === undefined ? 'default' : `${name}_FILE`;
}
