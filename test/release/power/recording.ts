// Owns: a recording of everything that processes of the project do to the files of one folder, one process after the other;
// it can be kept in a folder and read again.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { Client } from '../../support/client.ts';
import {
  ENVIRONMENT,
  endOf,
  type ServiceProcess,
  spawnService,
  startCommand,
  temporaryFolder,
} from '../../support/service.ts';
import { STORES_FOLDER } from '../../support/stores-folder.ts';
import { waitUntil } from '../../support/wait.ts';
import { callsIn, isComplete, recordingFromStart } from '../strace.ts';
import { Disk } from './disk.ts';

/** Microseconds that a sync lasts at least, so that requests arrive meanwhile, as on a disk. */
const SYNC_TIME = 1000;

interface Kept<Notes> {
  readonly folder: string;
  readonly outputs: number;
  readonly notes: Notes;
}

export class Recording {
  /** Its files are recorded. */
  readonly disk: string;
  /** Everything but these files. */
  readonly #folder: string;
  #outputs = 0;

  constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), 'book-catalogue-power-'));
    this.disk = temporaryFolder(STORES_FOLDER);
  }

  /** Everything that is on the disk now is durable. To be called before anything is recorded. */
  begin(): void {
    cpSync(this.disk, join(this.#folder, 'before'), { recursive: true });
  }

  /**
   * Serves a store during some work.
   * @param syncs what strace does to them.
   */
  async serve(
    file: string,
    work: (service: ServiceProcess) => Promise<unknown>,
    syncs = `delay_exit=${SYNC_TIME}`,
  ): Promise<void> {
    const output = this.#nextOutput();
    const dbUrl = this.urlOf(file);
    const setting = recordingFromStart(output, ['-e', `inject=fsync,fdatasync:${syncs}`]);
    const variables = { ...ENVIRONMENT, DB_URL: dbUrl, LOG_LEVEL: 'info' };
    const command = await startCommand(variables, { setting });
    const ended = once(command.process, 'close');
    try {
      await work({ ...command, dbUrl, client: await Client.logIn(command) });
    } finally {
      command.process.kill('SIGTERM');
      await ended;
    }
    await waitUntil(() => isComplete(output, Number(command.process.pid)));
  }

  /** Runs a command, which must succeed. */
  async run(
    args: readonly string[],
    file: string,
    feed: (stdin: Writable, syncs: () => number) => Promise<void> = async (stdin) => void stdin.end(),
  ): Promise<void> {
    const output = this.#nextOutput();
    const setting = recordingFromStart(output);
    const child = spawnService({ DB_URL: this.urlOf(file) }, args, { stdin: 'pipe', setting });
    const ended = endOf(child);
    const syncs = () =>
      (existsSync(output) ? readFileSync(output, 'latin1') : '').split(/ f(?:data)?sync\(/).length;
    await feed(child.stdin as Writable, syncs);
    const { code, stderr } = await ended;
    assert.equal(code, 0, stderr);
    await waitUntil(() => isComplete(output, Number(child.pid)));
  }

  /** @param file in the recorded folder. */
  urlOf(file: string): string {
    return `sqlite:${join(this.disk, file)}`;
  }

  /** Ends the recording. */
  end(notes: unknown): void {
    const kept: Kept<unknown> = { folder: this.disk, outputs: this.#outputs, notes };
    writeFileSync(join(this.#folder, 'notes.json'), JSON.stringify(kept));
  }

  get folder(): string {
    return this.#folder;
  }

  #nextOutput(): string {
    this.#outputs += 1;
    return outputIn(this.#folder, this.#outputs);
  }
}

/** Reads a recording that has ended. */
export function readRecording<Notes>(folder: string): { disk: Disk; notes: Notes } {
  const kept = JSON.parse(readFileSync(join(folder, 'notes.json'), 'utf8')) as Kept<Notes>;
  const outputs = Array.from({ length: kept.outputs }, (_, number) => outputIn(folder, number + 1));
  return { disk: new Disk(kept.folder, join(folder, 'before'), callsIn(outputs)), notes: kept.notes };
}

function outputIn(folder: string, number: number): string {
  return join(folder, `calls-${number}`);
}

/** Writes a state into a folder, in place of everything that is there. */
export function writeState(state: ReadonlyMap<string, Buffer>, folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [path, bytes] of state) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
}
