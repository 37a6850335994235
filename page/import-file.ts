// Owns: a file that a person has chosen, as the page sees it: each question is one to the worker that has read it.

import type { Calls, Message } from './import-calls.ts';
import { startImportWorker } from './worker.ts';

/** The file cannot be used; its message is for the person at the page. */
export class FileComplaint extends Error {}

type Results = { readonly [Name in keyof Calls]: Awaited<ReturnType<Calls[Name]>> };

export class ImportFile {
  readonly file: File;
  readonly #worker = startImportWorker();
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = 0;

  /** @param onProgress is called with the bytes that have been read so far. */
  constructor(file: File, onProgress: (bytes: number) => void) {
    this.file = file;
    this.#worker.addEventListener('message', ({ data }: MessageEvent<Message>) => {
      if ('bytes' in data) onProgress(data.bytes);
      else this.#settle(data);
    });
    // The program of the worker could not be loaded.
    this.#worker.addEventListener('error', () => {
      const complaint = new FileComplaint(
        'Files cannot be read at the moment. Reload the page, and try again.',
      );
      for (const { reject } of this.#waiting.values()) reject(complaint);
    });
  }

  /**
   * Asks the worker. Questions are answered one after the other.
   * @throws FileComplaint
   */
  ask<Name extends keyof Calls>(name: Name, ...args: Parameters<Calls[Name]>): Promise<Results[Name]> {
    this.#calls += 1;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(this.#calls, answer);
    this.#worker.postMessage({ call: this.#calls, name, args });
    return answer.promise as Promise<Results[Name]>;
  }

  /** Ends the worker. Its answers never come. */
  close(): void {
    this.#worker.terminate();
  }

  #settle(message: Exclude<Message, { bytes: number }>): void {
    const answer = this.#waiting.get(message.call);
    this.#waiting.delete(message.call);
    if ('complaint' in message) answer?.reject(new FileComplaint(message.complaint));
    else answer?.resolve(message.result);
  }
}
