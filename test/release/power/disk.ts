// Owns: the states that a power failure may leave on a disk, by the calls that were recorded before it. The model is that of
// ALICE (OSDI 2014) for ext4 with ordered data, taken strictly:
// - A write is on disk, sector by sector, in any of the versions since the latest sync of its file. A file ends where the
//   last of its sectors on disk does; a missing sector before it is zeros.
// - Names (creations, renames, removals, folders) and truncations reach the disk in their order, as in the journal of ext4 or
//   XFS. A sync of a file or folder brings everything up to that one's own latest entry there, and nothing that comes later:
//   not the names of other files, as a sync on ext4 often does.
// - A sync covers the calls that had ended before it began. One that fails marks its pages as written all the same: no
//   later sync writes them, unless they are changed again.
// Does not: accept unknown calls on these files.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Call, filesOf, textsOf } from '../strace.ts';
import { type Change, Content, choices, chosen, contentAt, lossOf, pageOf, pagesOf } from './content.ts';

/** The index of a SQLite log is not written by calls. An older one, zeros or nothing may be there. */
const IS_UNWRITTEN = /-shm$/;
const INDEX_SIZE = 32 * 1024;

/** A file, under whatever names. */
class Inode {
  readonly number: number;
  readonly isRecorded: boolean;
  /** What the processes see. */
  size: number;
  cursor = 0;

  constructor(number: number, path: string, size = 0) {
    this.number = number;
    this.isRecorded = !IS_UNWRITTEN.test(path);
    this.size = size;
  }
}

interface Entry {
  readonly end: number;
  /** The inodes and folders whose sync brings it to disk. */
  readonly concerns: readonly unknown[];
  apply(names: Map<string, Inode>): void;
}

/** A moment at which the power may fail: after each call has started, and after each sync has ended. */
interface Moment {
  readonly after: Call;
  readonly contents: ReadonlyMap<Inode, Content>;
  /** Entries of the journal that are on disk, and those that may be. */
  readonly durable: number;
  readonly issued: number;
  /** How much had been said to the outside. */
  readonly said: number;
}

/** Which of the states that a power failure may leave. */
export interface Cut {
  readonly moment: number;
  /** Chooses how much of the journal is on disk. */
  readonly journal: number;
  /** Chooses what is on disk of each file. */
  readonly seed: number;
}

/** The files after a power failure, by their paths in the folder. */
export type State = ReadonlyMap<string, Buffer>;

export class Disk {
  readonly moments: Moment[] = [];
  /** The texts that left the processes, in their order: answers on sockets, and what a command printed. */
  readonly said: string[] = [];
  readonly #folder: string;
  readonly #names = new Map<string, Inode>();
  readonly #namesBefore: ReadonlyMap<string, Inode>;
  readonly #journal: Entry[] = [];
  #contents: ReadonlyMap<Inode, Content> = new Map();
  /** Changes that a failed sync has marked as written. */
  readonly #abandoned = new Set<Change>();
  #durable = 0;

  /**
   * @param folder as it was called when the calls were recorded.
   * @param before a folder with its files as they were before; all of that is on disk.
   */
  constructor(folder: string, before: string, calls: readonly Call[]) {
    this.#folder = folder;
    for (const path of readdirSync(before, { recursive: true }).map(String)) {
      if (statSync(join(before, path)).isFile())
        this.#begin(join(folder, path), readFileSync(join(before, path)));
    }
    this.#namesBefore = new Map(this.#names);
    const succeeded = calls.filter(({ name, result = 0 }) => result >= 0 || isSync(name));
    const ends = succeeded.filter(({ name, result }) => isSync(name) && result !== undefined);
    const points = [
      ...succeeded.map((call) => ({ call, at: call.begin, isEnd: false })),
      ...ends.map((call) => ({ call, at: call.end, isEnd: true })),
    ].toSorted((one, other) => one.at - other.at || Number(one.isEnd) - Number(other.isEnd));
    this.#note({ name: 'the beginning', text: '', begin: 0, end: 0, result: 0 });
    for (const { call, isEnd } of points) {
      const isNew = isEnd ? this.#sync(call) : this.#carryOut(call);
      if (isNew) this.#note(call);
    }
  }

  /** The files after a power failure. */
  after({ moment, journal, seed }: Cut): State {
    const { contents, durable, issued } = this.#moment(moment);
    const entries = durable + (journal % (issued - durable + 1));
    const state = new Map<string, Buffer>();
    for (const [path, inode] of this.#namesAt(entries)) {
      const content = contents.get(inode) as Content;
      const bytes = inode.isRecorded
        ? contentAt(content, entries, choices(seed, inode.number, content))
        : [content.stored, Buffer.alloc(INDEX_SIZE), undefined][Math.floor(chosen(seed, inode.number) * 3)];
      if (bytes !== undefined) state.set(this.#relative(path), bytes);
    }
    return state;
  }

  /** What had been said to the outside when the power failed. */
  saidBefore({ moment }: Cut): readonly string[] {
    return this.said.slice(0, this.#moment(moment).said);
  }

  describe({ moment, journal, seed }: Cut): string {
    const { contents, durable, issued, after } = this.#moment(moment);
    const entries = durable + (journal % (issued - durable + 1));
    const files = [...this.#namesAt(entries)].map(([path, inode]) => {
      const content = contents.get(inode);
      const pending = content?.pending.length ?? 0;
      return `${path}: ${pending} changes not synced${pending === 0 ? '' : `; lost: ${lossOf(seed, inode.number)}`}`;
    });
    const call = `${after.name}(${filesOf(after).join(', ')}), line ${after.begin}`;
    return [
      `after ${call}; of ${issued - durable} names not synced, ${entries - durable} are on disk`,
      ...files,
    ].join('\n  ');
  }

  #moment(number: number): Moment {
    return this.moments[number] as Moment;
  }

  #namesAt(entries: number): Map<string, Inode> {
    const names = new Map(this.#namesBefore);
    for (const entry of this.#journal.slice(0, entries)) entry.apply(names);
    return names;
  }

  #note(after: Call): void {
    this.moments.push({
      after,
      contents: this.#contents,
      durable: this.#durable,
      issued: this.#journal.length,
      said: this.said.length,
    });
  }

  /** @returns whether it changes what a power failure may leave. */
  #carryOut(call: Call): boolean {
    const { name } = call;
    const [file] = filesOf(call);
    switch (name) {
      case 'open':
      case 'openat':
      case 'creat':
        return this.#open(call);
      case 'write':
      case 'writev':
      case 'pwrite64':
      case 'pwritev':
      case 'sendto':
      case 'sendmsg':
        return this.#write(call, file);
      case 'ftruncate':
        return this.#truncate(call, this.#inodeAt(file), Number(/, (\d+)/.exec(call.text)?.[1]));
      case 'rename':
      case 'renameat':
      case 'renameat2':
        return this.#rename(call);
      case 'link':
      case 'linkat':
        return this.#link(call);
      case 'unlink':
      case 'unlinkat':
      case 'mkdir':
      case 'mkdirat':
        return this.#changeFolder(call);
      default:
        if (isSync(name) || !pathsOf(call).some((path) => this.#holds(path))) return false;
        throw new Error(`${name} is unknown: ${call.text}`);
    }
  }

  #open(call: Call): boolean {
    const [path = ''] = pathsOf(call);
    if (!this.#holds(path)) return false;
    const inode = this.#names.get(path);
    if (inode !== undefined) {
      inode.cursor = 0;
      return /\bO_TRUNC\b/.test(call.text) && this.#truncate(call, inode, 0);
    }
    if (!/\bO_CREAT\b/.test(call.text)) return false;
    const created = this.#begin(path, Buffer.alloc(0));
    this.#enter(call, [created, dirname(path)], (names) => names.set(path, created));
    return true;
  }

  #begin(path: string, stored: Buffer): Inode {
    const inode = new Inode(this.#contents.size, path, stored.length);
    this.#contents = new Map([...this.#contents, [inode, new Content(stored)]]);
    this.#names.set(path, inode);
    return inode;
  }

  #write(call: Call, file: string | undefined): boolean {
    const bytes = Buffer.concat(textsOf(call));
    const inode = this.#inodeAt(file);
    if (inode === undefined) {
      const isOutside = /^(1|2)</.test(call.text) || file?.startsWith('socket:') === true;
      if (isOutside) this.said.push(bytes.toString());
      return isOutside;
    }
    const written = bytes.subarray(0, call.result);
    const [, place] = /, (\d+)(?:\) += [^"]*)?$/.exec(call.text) ?? [];
    const offset = call.name.startsWith('p') ? Number(place) : inode.cursor;
    if (!call.name.startsWith('p')) inode.cursor += written.length;
    inode.size = Math.max(inode.size, offset + written.length);
    return this.#change(inode, { kind: 'write', offset, bytes: written, end: call.end });
  }

  #truncate({ end }: Call, inode: Inode | undefined, size: number): boolean {
    if (inode === undefined || inode.size === size) return false;
    inode.size = size;
    const entry = this.#enter({ end }, [inode], () => {});
    return this.#change(inode, { kind: 'truncation', size, entry, end });
  }

  #change(inode: Inode, change: Change): boolean {
    if (!inode.isRecorded) return false;
    const content = this.#contents.get(inode) as Content;
    this.#contents = new Map(this.#contents).set(inode, content.followedBy(change));
    return true;
  }

  #rename(call: Call): boolean {
    const [from = '', to = ''] = pathsOf(call);
    if (!this.#holds(from) && !this.#holds(to)) return false;
    const inode = this.#inodeAt(from);
    if (inode === undefined) throw new Error(`${from} is renamed to ${to}`);
    this.#enter(call, [inode, dirname(from), dirname(to)], (names) => {
      names.delete(from);
      names.set(to, inode);
    });
    return true;
  }

  #link(call: Call): boolean {
    const [from = '', to = ''] = pathsOf(call);
    const inode = this.#inodeAt(from);
    if (inode === undefined) return false;
    this.#enter(call, [inode, dirname(to)], (names) => names.set(to, inode));
    return true;
  }

  #changeFolder(call: Call): boolean {
    const [path = ''] = pathsOf(call);
    if (!this.#holds(path)) return false;
    if (call.name.startsWith('mkdir')) {
      this.#enter(call, [path, dirname(path)], () => {});
    } else {
      this.#enter(call, [dirname(path)], (names) => names.delete(path));
    }
    return true;
  }

  /** @returns its place in the journal. */
  #enter({ end }: Pick<Call, 'end'>, concerns: readonly unknown[], apply: Entry['apply']): number {
    apply(this.#names);
    return this.#journal.push({ end, concerns, apply }) - 1;
  }

  #sync(call: Call): boolean {
    const [path] = filesOf(call);
    if (path === undefined || !this.#holds(path)) return false;
    const inode = this.#names.get(path);
    const hasEnded = ({ end }: { readonly end: number }) => end < call.begin;
    if (Number(call.result) < 0) {
      if (inode !== undefined) this.#abandon(inode, hasEnded);
      return false;
    }
    const concerned = inode ?? path;
    const last = this.#journal.findLastIndex(
      (entry) => hasEnded(entry) && entry.concerns.includes(concerned),
    );
    this.#durable = Math.max(this.#durable, last + 1);
    if (inode !== undefined) this.#store(inode, hasEnded);
    return true;
  }

  /** Page by page, since a page that is changed again is written as a whole. */
  #abandon(inode: Inode, hasEnded: (change: Change) => boolean): void {
    const { stored, pending } = this.#contents.get(inode) as Content;
    const divided = pending.flatMap((change) =>
      hasEnded(change) && change.kind === 'write' ? pagesOf(change) : [change],
    );
    for (const change of divided)
      if (hasEnded(change) && change.kind === 'write') this.#abandoned.add(change);
    this.#contents = new Map(this.#contents).set(inode, new Content(stored, divided));
  }

  #store(inode: Inode, hasEnded: (change: Change) => boolean): void {
    const { stored, pending } = this.#contents.get(inode) as Content;
    const written = pending.filter((change) => hasEnded(change) && !this.#abandoned.has(change));
    const pages = new Set(
      written.flatMap((change) => (change.kind === 'write' ? pagesOf(change).map(pageOf) : [])),
    );
    const isStored = (change: Change) =>
      written.includes(change) ||
      (this.#abandoned.has(change) && change.kind === 'write' && pages.has(pageOf(change)));
    const content = new Content(stored, pending.filter(isStored));
    const now = contentAt(content, this.#durable, () => true);
    this.#contents = new Map(this.#contents).set(
      inode,
      new Content(
        now,
        pending.filter((change) => !isStored(change)),
      ),
    );
  }

  #holds(path: string): boolean {
    return path === this.#folder || path.startsWith(`${this.#folder}/`);
  }

  #relative(path: string): string {
    return path.slice(this.#folder.length + 1);
  }

  #inodeAt(path: string | undefined): Inode | undefined {
    return path === undefined ? undefined : this.#names.get(path);
  }
}

function isSync(name: string): boolean {
  return name === 'fsync' || name === 'fdatasync';
}

/** The absolute paths among the arguments of a call. */
function pathsOf(call: Call): string[] {
  const [folder = '/'] = filesOf(call);
  return textsOf(call).map((path) => resolve(folder, path.toString()));
}
