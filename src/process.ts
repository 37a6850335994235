// Owns: the process around the command line: arguments, environment, signals and the exit code.

import { setImmediate, setTimeout } from 'node:timers/promises';
import { run } from './cli.ts';
import { printable } from './terminal/printable.ts';
import { untilRead } from './terminal/until-read.ts';
import { TIMES } from './times.ts';

const { doubleSignal, farewell } = TIMES.process;

/** Runs the command that the arguments name, then ends the process. */
export async function runProcess(): Promise<never> {
  process.umask(0o077); // files and folders that a command makes are for its own user
  process.on('uncaughtException', (error) => {
    process.stderr.write(
      `Internal error, exiting: ${error.stack?.replace(/[^\n]+/g, (line) => printable(line))}\n`,
    );
    process.exit(1);
  });

  // The first signal stops the service, a second one ends the process at once.
  const { promise: stop, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let first: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    first ??= performance.now();
    resolve(signal);
    if (performance.now() - first < doubleSignal) return;
    process.off(signal, onSignal);
    process.kill(process.pid, signal);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);

  // A message that cannot be written ends no command: an import continues if the disk of its messages is full.
  process.stderr.on('error', () => {});
  let lost: NodeJS.ErrnoException | undefined;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') lost ??= error; // otherwise its reader, such as `head`, has read enough
  });
  const code = await run(process.argv.slice(2), process.env, process, stop);
  const overdue = stop.then(() => setTimeout(farewell));
  await Promise.race([untilRead(process.stdout), overdue]);
  await setImmediate(); // including the error of the last write
  const isLost = code === 0 && lost !== undefined;
  if (isLost) process.stderr.write(`The output cannot be written: ${lost?.message}.\n`);
  await Promise.race([untilRead(process.stderr), overdue]);
  process.exit(isLost ? 1 : code);
}
