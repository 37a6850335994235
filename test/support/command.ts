// Owns: the command in this process, for tests to which a process of its own is not the point: the real arguments,
// environment, sockets and log, without the half second that a process takes to start.

import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../src/command.ts';
import type { Target } from './client.ts';
import { temporaryFolder } from './service.ts';
import { waitUntil } from './wait.ts';

/** How a command ended and all that it printed. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandHere extends Target {
  /** What it has logged so far, a line each. */
  readonly log: readonly string[];
  /** Ends it as a signal would. */
  stop(): Promise<Outcome>;
}

/** Runs a command to its end. Its working directory is that of the tests: paths in `env` must be absolute. */
export async function runHere(args: readonly string[], env: Record<string, string>): Promise<Outcome> {
  const { streams, printed } = playStreams();
  const code = await run(args, env, streams, new Promise(() => {}));
  return { code, ...printed() };
}

/** Starts `serve` and waits until it listens; LOG_LEVEL must be one at which it says so. */
export async function startHere(env: Record<string, string>): Promise<CommandHere> {
  const { streams, printed } = playStreams();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<string>();
  let outcome: Outcome | undefined;
  const ended = run([], env, streams, stopped).then((code) => {
    outcome = { code, ...printed() };
    return outcome;
  });
  const log = () => printed().stdout.split('\n').slice(0, -1);
  const urlOf = () => log().find((line) => line.includes('"msg":"listening"'));
  await waitUntil(() => outcome !== undefined || urlOf() !== undefined);
  const listening = urlOf();
  if (listening === undefined) throw new Error(`the service ended with ${outcome?.code}: ${outcome?.stderr}`);
  const { url } = JSON.parse(listening) as { url: string };
  return {
    url,
    port: Number(new URL(url).port),
    get log() {
      return log();
    },
    stop() {
      stop('SIGTERM');
      return ended;
    },
  };
}

/** Standard output and error as a command knows them, and what it has written there. */
function playStreams() {
  let file: string | undefined;
  let stdout = '';
  let stderr = '';
  const streams = {
    stdout: {
      isTTY: false,
      /** Asked for by `serve`, which closes it. */
      get fd() {
        file = join(temporaryFolder(), 'stdout');
        return openSync(file, 'a');
      },
      write(text: string) {
        stdout += text;
      },
    },
    stderr: {
      write(text: string) {
        stderr += text;
      },
    },
  };
  return {
    streams: streams as unknown as Parameters<typeof run>[2],
    printed: () => ({ stdout: file === undefined ? stdout : readFileSync(file, 'utf8'), stderr }),
  };
}
