// Owns: a file that a person has chosen, as the page sees it: each question is one to the worker that has read it.

import type { Calls, Message } from './calls.ts';
import { startImportWorker } from './start-worker.ts';

/** The file cannot be used; its message is for the person at the page. */
export class FileComplaint extends Error {}

type Results = { readonly [Name in keyof Calls]: Awaited<ReturnType<Calls[Name]>> };

export class ImportFile {
  readonly file: File;
  readonly #worker = startImportWorker();
  /** In the order of the questions, which is that of the answers. */
  #waiting: PromiseWithResolvers<unknown>[] = [];
  /** Why no question is answered any more. */
  #ended: FileComplaint | undefined;

  /** @param onProgress is called with the bytes that have been read so far. */
  constructor(file: File, onProgress: (bytes: number) => void) {
    this.file = file;
    this.#worker.addEventListener('message', ({ data }: MessageEvent<Message>) => {
      if ('bytes' in data) onProgress(data.bytes);
      else if ('complaint' in data) this.#waiting.shift()?.reject(new FileComplaint(data.complaint));
      else this.#waiting.shift()?.resolve(data.result);
    });
    // The program of the worker could not be loaded.
    this.#worker.addEventListener('error', () => {
      this.#end('Files cannot be read at the moment. Reload the page, and try again.');
    });
  }

  /**
   * Asks the worker. Questions are answered one after the other.
   * @throws FileComplaint
   */
  ask<Name extends keyof Calls>(name: Name, ...args: Parameters<Calls[Name]>): Promise<Results[Name]> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.push(answer);
    this.#worker.postMessage({ name, args });
    return answer.promise as Promise<Results[Name]>;
  }

  /** Ends the worker, and rejects every question that it has not answered. */
  close(): void {
    this.#worker.terminate();
    this.#end('The file was closed.');
  }

  #end(reason: string): void {
    this.#ended ??= new FileComplaint(reason);
    for (const { reject } of this.#waiting.splice(0)) reject(this.#ended);
  }
}
