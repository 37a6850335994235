#!/usr/bin/env node
// Owns: the command as a program of this folder, which needs nothing but Node.js: arguments, variables, signals.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { helpOf, OPTIONS, Refusal, verify } from './command.ts';

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { ...OPTIONS, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) {
    process.stdout.write(helpOf('node main.ts'));
    return 0;
  }
  const [address, ...others] = positionals;
  if (address === undefined || others.length > 0) throw new Refusal('It needs one URL. See --help.', 2);
  return verify(address, values, {
    stdout: process.stdout,
    stop: Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]),
    known: {
      username: process.env.AUTH_USERNAME,
      password: variable('AUTH_PASSWORD'),
      secret: variable('SECRET_TOKEN'),
    },
  });
}

/** A variable, or the file that it names with `_FILE`, without its last line end. */
function variable(name: string): string | undefined {
  const file = process.env[`${name}_FILE`];
  return file === undefined ? process.env[name] : readFileSync(file, 'utf8').replace(/\r?\n$/, '');
}

process.exitCode = await main().catch((error) => {
  if (!(error instanceof Refusal) && typeof error.code !== 'string') throw error;
  process.stderr.write(`${error.message}\n`);
  return error instanceof Refusal ? error.exitCode : 2;
});
