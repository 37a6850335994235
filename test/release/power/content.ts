// Owns: the content of one file after a power failure: what was synced, and of every later change what may be on disk.

/** Bytes that a disk writes as a whole. */
const SECTOR = 512;

/** Bytes that the system marks as written by a sync. */
const PAGE = 4096;

export interface Write {
  readonly kind: 'write';
  readonly offset: number;
  readonly bytes: Buffer;
  readonly end: number;
}

interface Truncation {
  readonly kind: 'truncation';
  readonly size: number;
  /** Its place in the journal. */
  readonly entry: number;
  readonly end: number;
}

export type Change = Write | Truncation;

/** What the disk has of a file for certain, and what it may have in addition. */
export class Content {
  readonly stored: Buffer;
  /** Shared with the contents of later moments, which have more of it: a copy for each moment would fill the memory. */
  readonly #changes: Change[];
  readonly #count: number;

  constructor(stored: Buffer, changes: Change[] = [], count = changes.length) {
    this.stored = stored;
    this.#changes = changes;
    this.#count = count;
  }

  get pending(): readonly Change[] {
    return this.#changes.slice(0, this.#count);
  }

  /** Once for each content: the one that follows has the change as well. */
  followedBy(change: Change): Content {
    return new Content(this.stored, this.#changes, this.#changes.push(change));
  }
}

/** The ways in which writes may be lost. */
const LOSSES = [
  ...['nothing', 'everything', 'all after one', 'all after one, torn', 'sectors', 'sectors but a few'],
  ...['pages', 'one write', 'all but one write', 'some writes'],
] as const;

export function pagesOf({ offset, bytes, ...rest }: Write): Write[] {
  const pages: Write[] = [];
  for (let begin = 0; begin < bytes.length; ) {
    const length = Math.min(bytes.length - begin, PAGE - ((offset + begin) % PAGE));
    pages.push({ ...rest, offset: offset + begin, bytes: bytes.subarray(begin, begin + length) });
    begin += length;
  }
  return pages;
}

export function pageOf({ offset }: Write): number {
  return Math.floor(offset / PAGE);
}

/** Whether a change is on disk in one of its sectors. */
type IsThere = (change: number, sector: number) => boolean;

/** @param entries of the journal that are on disk. */
export function contentAt({ stored, pending }: Content, entries: number, isThere: IsThere): Buffer {
  if (pending.length === 0) return stored;
  const ends = pending.map((change) => (change.kind === 'write' ? change.offset + change.bytes.length : 0));
  const content = Buffer.alloc(Math.max(stored.length, ...ends));
  stored.copy(content);
  let size = stored.length;
  /** Where the space begins that a truncation has freed which is not on disk: later writes are not, either. */
  let freed = Number.POSITIVE_INFINITY;
  pending.forEach((change, number) => {
    if (change.kind === 'truncation') {
      if (change.entry >= entries) {
        freed = Math.min(freed, change.size);
      } else {
        content.fill(0, change.size);
        size = change.size;
      }
      return;
    }
    const { offset, bytes } = change;
    for (let begin = 0; begin < bytes.length && offset + begin < freed; ) {
      const sector = Math.floor((offset + begin) / SECTOR);
      const end = Math.min(bytes.length, (sector + 1) * SECTOR - offset);
      if (isThere(number, sector)) {
        bytes.copy(content, offset + begin, begin, end);
        size = Math.max(size, offset + end);
      }
      begin = end;
    }
  });
  return content.subarray(0, size);
}

/** How the changes of a file are lost. */
export function lossOf(seed: number, inode: number): (typeof LOSSES)[number] {
  return LOSSES[Math.floor(chosen(seed, inode) * LOSSES.length)] as (typeof LOSSES)[number];
}

/** Which changes of a file are on disk. In a sector, all changes before a later one are. */
export function choices(seed: number, inode: number, { pending }: Content): IsThere {
  const count = pending.length;
  const loss = lossOf(seed, inode);
  const one = Math.floor(chosen(seed, inode, 1) * count);
  const share = chosen(seed, inode, 2);
  const sectorsOf = (number: number): readonly [number, number] => {
    const change = pending[number];
    if (change?.kind !== 'write') return [0, -1];
    return [
      Math.floor(change.offset / SECTOR),
      Math.floor((change.offset + change.bytes.length - 1) / SECTOR),
    ];
  };
  const touches = (number: number, sector: number) => {
    const [first, last] = sectorsOf(number);
    return first <= sector && sector <= last;
  };
  /** How many changes a place of the file has. */
  const version = (place: number, lost: number) =>
    chosen(seed, inode, 3, place) >= lost ? count : Math.floor(chosen(seed, inode, 4, place) * (count + 1));
  switch (loss) {
    case 'nothing':
      return () => true;
    case 'everything':
      return () => false;
    case 'all after one':
      return (number) => number <= one;
    case 'all after one, torn':
      return (number, sector) => number < one || (number === one && chosen(seed, inode, 5, sector) < share);
    case 'sectors':
      return (number, sector) => number < version(sector, share);
    case 'sectors but a few':
      return (number, sector) => number < version(sector, 0.05);
    case 'pages':
      return (number, sector) => number < version(Math.floor((sector * SECTOR) / PAGE), share);
    case 'one write':
      return (number, sector) => number < one || !touches(one, sector);
    case 'all but one write':
      return (number, sector) => number <= one && touches(one, sector);
    default: {
      const isKept = (number: number) => chosen(seed, inode, 6, number) < share;
      return (number, sector) => {
        for (let later = number; later < count; later += 1)
          if (isKept(later) && touches(later, sector)) return true;
        return false;
      };
    }
  }
}

/** A number in [0, 1) that follows from these. Mixing as in MurmurHash3, by Austin Appleby, in the public domain. */
export function chosen(...numbers: readonly number[]): number {
  let state = 0x9747b28c;
  for (const number of numbers) {
    state = Math.imul(state ^ number, 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    state ^= state >>> 16;
  }
  return (state >>> 0) / 2 ** 32;
}
