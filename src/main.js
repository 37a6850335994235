#!/usr/bin/env node
// Owns: the entry point: arguments, environment, signals and the exit code.
// It is JavaScript, unlike its neighbours. The compile cache that it enables saves the service the TypeScript compiler,
// and with it 16 MiB and a quarter of the time to start, but it could not save this file itself.

import './runtime.js';
import { fileURLToPath } from 'node:url';

const { enableCompileCache } = await import('node:module');
// If the folder cannot be written, everything still works, but the start is slower.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache', import.meta.url)));
const { run } = await import('./cli.ts');

process.on('uncaughtException', (error) => {
  process.stderr.write(`Internal error, exiting: ${error.stack}\n`);
  process.exit(1);
});

// The first signal stops the service, a second one ends the process at once. One Ctrl-C may arrive as two signals: from
// the terminal, and from npm, which forwards it.
const DOUBLE_SIGNAL_WINDOW = 500; // milliseconds
const { promise: stop, resolve } = Promise.withResolvers();
/** @type {number | undefined} */
let first;
/** @param {NodeJS.Signals} signal */
const onSignal = (signal) => {
  first ??= performance.now();
  resolve(signal);
  if (performance.now() - first < DOUBLE_SIGNAL_WINDOW) return;
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
};
process.on('SIGTERM', onSignal);
process.on('SIGINT', onSignal);

process.exit(await run(process.argv.slice(2), process.env, process, stop));
