// Owns: the interface of what a store keeps of imports: any process can say how far one is, and another one can complete it.

/** An import as it is kept. */
export interface KeptImport {
  /** Numbered like a change. The event of the log with its books has the same number. */
  readonly number: number;
  /** Equal for the same file with the same options. */
  readonly fingerprint: string;
  /** `open` while a process works on it; `checked` after a dry run; `stopped` if it is not complete; `stored`, or `undone`, if it ends. */
  readonly state: 'open' | 'checked' | 'stopped' | 'stored' | 'undone';
  /** Milliseconds since its process was last seen. */
  readonly idle: number;
  /** How many rows of the file are done with, from its beginning. */
  readonly rows: number;
  /** How many books it has stored. */
  readonly books: number;
  /** For people: a value that JSON has. */
  readonly report: unknown;
  /** What the process that has the file is to do with it next: a value that JSON has; null for nothing. */
  readonly wanted: unknown;
}

/** How far an import is. What is left out stays. A report that was forgotten stays so until the file is read again, with a fingerprint. */
export type ImportProgress = Partial<Pick<KeptImport, 'state' | 'rows' | 'books' | 'report' | 'fingerprint'>>;

export interface KeptImportsReader {
  find(number: number): Promise<KeptImport | undefined>;
  /** The newest imports, the newest first. */
  newest(most: number): Promise<readonly KeptImport[]>;
}

export interface KeptImports extends KeptImportsReader {
  /**
   * Begins an import, and forgets all but the newest ones.
   * @param owner a name of the process that no other has.
   * @returns its number.
   */
  begin(fingerprint: string, owner: string): Promise<number>;
  /** The newest import with a fingerprint that is open or stopped. Others that look for it wait for the end of the transaction. */
  unfinished(fingerprint: string): Promise<KeptImport | undefined>;
  /** Gives an import to another process: from now on, the one before can keep nothing. */
  take(number: number, owner: string): Promise<void>;
  /** Asks the process that has the file of a checked import. */
  want(number: number, wanted: unknown): Promise<void>;
  /** What this process is to do with its import, which is no longer wanted then; null for nothing. */
  takeWanted(number: number, owner: string): Promise<unknown>;
  /** @returns false, without an effect, if the import was taken back, or has another owner. One that is stored stays so, with its report. */
  keep(number: number, owner: string, progress: ImportProgress): Promise<boolean>;
  /** Removes all reports: their rows may be of a book that is forgotten. */
  forgetReports(): Promise<void>;
  /** Ends an import, or all that are open or stopped: what they have stored is taken back. @returns whether there was one. */
  close(number: number | undefined): Promise<boolean>;
}

/** Another process has taken an import over, or it was taken back. */
export class NoLongerOpen extends Error {
  constructor() {
    super('another process completes it, or it was taken back');
  }
}
