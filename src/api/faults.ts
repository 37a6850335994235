// Owns: the answer to a request that failed, and how it is counted and logged.
// Does not: show a client the reason, or flood the log when every request meets the same fault.

import { StoreUnavailable } from '../books/store.ts';
import { BeyondFormat } from '../files/workbook-writer.ts';
import type { Answer } from '../http/answer.ts';
import { BodyIncomplete, BodyTooLarge, NoRoomForBody } from '../http/body.ts';
import { NoRoomForFile } from '../import/upload.ts';
import type { Log } from '../log/log.ts';
import type { Times } from '../times.ts';
import * as answers from './envelope.ts';
import type { RequestCounts } from './request-counts.ts';

export function faultAnswers(log: Log, requests: RequestCounts, { faultLinesApart }: Times['api']) {
  const logStore = faultLog(log, 'the store is unavailable', faultLinesApart);
  const logBody = faultLog(log, 'a request body was refused', faultLinesApart);
  const logFile = faultLog(log, 'the file of an import was refused', faultLinesApart);
  const logAnswer = faultLog(log, 'an answer was refused', faultLinesApart);

  function countStore({ kind, message }: StoreUnavailable, reqId: string): void {
    requests.storeFaults[kind] += 1;
    logStore(reqId, message);
  }

  return {
    answer(error: unknown, reqId: string): Answer {
      if (error instanceof BodyTooLarge) return answers.PAYLOAD_TOO_LARGE;
      if (error instanceof BodyIncomplete) return answers.BAD_REQUEST; // nobody will read it
      if (error instanceof NoRoomForBody) logBody(reqId, 'the memory for request bodies is used up');
      else if (error instanceof NoRoomForFile) logFile(reqId, error.message);
      else if (error instanceof StoreUnavailable) countStore(error, reqId);
      else {
        log.error({ reqId, err: error }, 'a request failed');
        return answers.INTERNAL_ERROR;
      }
      return answers.SERVICE_UNAVAILABLE;
    },

    /** Replaces an answer that finds no memory, because other clients do not read theirs. */
    answerWithoutRoom(reqId: string): Answer {
      logAnswer(reqId, 'the memory for answers is used up');
      return answers.SERVICE_UNAVAILABLE;
    },

    /** Logs a list or a file that broke off half way, and counts a fault of the store. Its client only sees a broken connection. */
    listBroke(reason: unknown, reqId: string): void {
      if (reason instanceof BeyondFormat) {
        log.warn({ reqId, reason: reason.message }, 'a download broke off');
        return;
      }
      countStore(reason instanceof StoreUnavailable ? reason : new StoreUnavailable(reason), reqId);
    },
  };
}

/**
 * Logs the first fault at once; then, now and then, one line for each reason with the number of requests that met it.
 * A line for each request would drown the rest of the log.
 * @param apart milliseconds between two lines.
 */
function faultLog(log: Log, message: string, apart: number): (reqId: string, reason: string) => void {
  const waiting = new Map<string, { readonly reqId: string; requests: number }>();
  let isQuiet = true;
  const logWaiting = () => {
    isQuiet = waiting.size === 0;
    for (const [reason, { reqId, requests }] of waiting) log.error({ reqId, reason, requests }, message);
    waiting.clear();
    if (!isQuiet) setTimeout(logWaiting, apart).unref();
  };
  return (reqId, reason) => {
    const known = waiting.get(reason);
    if (known === undefined) waiting.set(reason, { reqId, requests: 1 });
    else known.requests += 1;
    if (isQuiet) logWaiting();
  };
}
