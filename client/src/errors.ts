// Owns: the errors of a call, other than the reason of its caller's signal.

import type { Book } from './book.ts';

/** A call failed. */
export class CatalogueError extends Error {
  override readonly name: string = 'CatalogueError';
  /** The HTTP status of the service's answer; undefined when no answer came, or only a part of one. */
  readonly status: number | undefined;
  /** The request's id in the service's log, if known. */
  readonly requestId: string | undefined;
  /**
   * Whether this call may have changed the catalogue nevertheless: it was sent, and its outcome is unknown. If false,
   * the call has changed nothing.
   */
  readonly mayBeDone: boolean;
  /** Whether something in front of the service has answered in its place, such as a proxy or its page for logging in. */
  readonly isForeign: boolean;

  /** @param message that of the service, if it has answered. */
  constructor(
    message: string,
    {
      status,
      requestId,
      mayBeDone = false,
      isForeign = false,
      cause,
    }: {
      readonly status?: number | undefined;
      readonly requestId?: string | undefined;
      readonly mayBeDone?: boolean;
      readonly isForeign?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.requestId = requestId;
    this.mayBeDone = mayBeDone;
    this.isForeign = isForeign;
  }
}

/** A change or a removal was not carried out, because the stored book is not the expected one. Its status is 412. */
export class BookChanged extends CatalogueError {
  override readonly name = 'BookChanged';
  /** The stored book; undefined when it could not be read. */
  readonly current: Book | undefined;

  constructor(
    message: string,
    current: Book | undefined,
    answer: ConstructorParameters<typeof CatalogueError>[1],
  ) {
    super(message, { ...answer, status: 412 });
    this.current = current;
  }
}

/** The service can no longer continue from this cursor. Begin again without one. Its status is 410. */
export class CursorExpired extends CatalogueError {
  override readonly name = 'CursorExpired';
}

/** The service does not accept this username and password, or this session any longer. */
export class WrongCredentials extends CatalogueError {
  override readonly name = 'WrongCredentials';
}
