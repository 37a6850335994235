// Owns: requests that the client has no method for, their answers, and the progress of an upload, which `fetch` does not have.

/** A request that the client has no method for. */
export interface Sent {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Relative to the page, with a query. */
  readonly path: string;
  readonly body?: File | string | undefined;
  /** Called with the bytes of a file that are sent. */
  readonly onSent?: ((bytes: number) => void) | undefined;
  readonly signal?: AbortSignal;
}

export type Send = (url: string | URL | Request, init: RequestInit) => Promise<Response>;

/** An answer of the service. */
export interface Answered {
  readonly status: number;
  readonly message: string;
  readonly data: unknown;
  /** Seconds until another attempt may succeed; 0 if the answer does not say so. */
  readonly retryAfter: number;
}

/**
 * @param onSent is called with the number of bytes.
 * @throws TypeError if there is no answer; the reason of the signal.
 */
export function upload(
  url: string | URL | Request,
  { method = 'POST', headers, body, signal }: RequestInit,
  onSent: (bytes: number) => void,
): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const request = new XMLHttpRequest();
  request.open(method, `${url}`);
  for (const [name, value] of new Headers(headers)) request.setRequestHeader(name, value);
  request.upload.addEventListener('progress', ({ loaded }) => onSent(loaded));
  request.addEventListener('load', () => {
    const { status, responseText } = request;
    const names = ['content-type', 'retry-after', 'www-authenticate'] as const;
    const headers = names.map((name) => [name, request.getResponseHeader(name) ?? ''] as [string, string]);
    resolve(new Response(responseText, { status, headers }));
  });
  request.addEventListener('error', () => reject(new TypeError('no answer')));
  signal?.addEventListener('abort', () => request.abort());
  request.addEventListener('abort', () => reject(signal?.reason));
  request.send(body as File);
  return promise;
}
