// Owns: `config`: prints the configuration in effect, without its secrets, or the error in it.

import { styleText } from 'node:util';
import { type Config, readConfig, SETTINGS } from '../config.ts';
import type { Environment } from '../environment.ts';
import type { Setting } from '../setting.ts';
import { describeStore, readDbUrl } from '../stores/open.ts';
import { printable, writeLine } from '../terminal/printable.ts';
import type { CommandContext } from './command.ts';

export const HELP = `Usage: book-catalogue config

Shows every variable with the value in effect and its source, secrets only as (set) or (not set). In a pipe, each line
is NAME=value. If the service could not start with this configuration, the command exits with code 1 and one
sentence. It opens neither the store nor a port.
`;

export async function run({ env, stdout, stderr }: CommandContext): Promise<number> {
  const config = readConfig(env);
  await readDbUrl(config.dbUrl, 'DB_URL', config.readUrl);
  const settings = Object.entries<Setting>(SETTINGS).map(([key, setting]) => {
    const isSet = sourceOf(env, setting.name) !== 'default';
    return [setting.name, printable(shown(setting, config[key as keyof Config], isSet))] as const;
  });
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
  for (const warning of config.warnings) writeLine(stderr, warning);
  return 0;
}

/** A value in effect, without its secrets. */
function shown({ secret, none = '(none)' }: Setting, value: unknown, isSet: boolean): string {
  if (secret === 'whole') return isSet ? '(set)' : '(not set)';
  if (value === undefined) return none;
  if (secret === 'password') return describeStore(String(value));
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  const { port } = value as { port?: number };
  return String(port ?? value) || none;
}

function sourceOf(env: Environment, name: string): string {
  if (env[name] !== undefined) return 'environment';
  return env[`${name}_FILE`] === undefined ? 'default' : `${name}_FILE`;
}
