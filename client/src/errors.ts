// Owns: the errors of a call, other than the reason of its caller's signal.

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

  /** @param message that of the service, if it has answered. */
  constructor(
    message: string,
    {
      status,
      requestId,
      mayBeDone = false,
      cause,
    }: {
      readonly status?: number | undefined;
      readonly requestId?: string | undefined;
      readonly mayBeDone?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.requestId = requestId;
    this.mayBeDone = mayBeDone;
  }
}

/** The service does not accept this username and password. */
export class WrongCredentials extends CatalogueError {
  override readonly name = 'WrongCredentials';
}
