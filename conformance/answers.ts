// Owns: reading answers from a stream of bytes, the form in which the rules see them, and the limits of their size and time.

/** An answer as it was on the wire. */
export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Record<string, string>;
  /** One character for each byte. */
  readonly body: string;
}

/** An envelope with its headers; without a body (304, `HEAD`) the message is '' and the data undefined. */
export interface Answer {
  readonly status: number;
  readonly message: string;
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any form from the service; each rule says what it must be
  readonly data: any;
  readonly headers: Headers;
  /** The request, for a complaint about the answer. */
  readonly request: string;
}

/** The links of an answer, by their relation. */
export function linksOf({ headers }: Answer): Record<string, string> {
  const links = (headers.get('link') ?? '').matchAll(/<([^>]*)>; rel="([^"]*)"/g);
  return Object.fromEntries([...links].map(([, url, relation]) => [relation, url]));
}

/** What an answer may take. */
export interface Limits {
  /** Milliseconds until the whole answer is there. */
  readonly time: number;
  /** Characters of all answers that are held at the same time. */
  readonly size: number;
}

/** The characters of all answers that are held at the same time. */
export class Held {
  readonly #limit: number;
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns whether there was room. */
  take(size: number): boolean {
    const hasRoom = this.#size + size <= this.#limit;
    if (hasRoom) this.#size += size;
    return hasRoom;
  }

  release(size: number): void {
    this.#size -= size;
  }

  /** The complaint about an answer that finds no room. */
  get excess(): string {
    return `answers of more than ${this.#limit} characters at once`;
  }
}

/** Reads answers that are framed by Content-Length or in chunks. Interim answers (1xx) are left out. */
export class AnswerReader {
  readonly answers: RawAnswer[] = [];
  /** The part of the stream that is not parsed yet. */
  #rest = '';
  /** Of the answer whose body is not complete yet. */
  #head: Omit<RawAnswer, 'body'> | undefined;
  #chunks = '';

  /** @param text one character for each byte. */
  add(text: string): void {
    this.#rest += text;
    while (this.#head === undefined ? this.#readHead() : this.#readBody(this.#head));
  }

  /** @returns whether there may be more to read. */
  #readHead(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n');
    if (end === -1) return false;
    const [statusLine = '', ...lines] = this.#rest.slice(0, end).split('\r\n');
    this.#rest = this.#rest.slice(end + 4);
    const status = Number(statusLine.split(' ')[1]);
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    if (status >= 200) this.#head = { status, headers };
    return true;
  }

  #readBody({ status, headers }: Omit<RawAnswer, 'body'>): boolean {
    let size = Number(headers['content-length'] ?? 0);
    let before = 0;
    let after = 0;
    const isChunked = headers['transfer-encoding'] === 'chunked';
    if (isChunked) {
      const line = this.#rest.indexOf('\r\n');
      if (line === -1) return false;
      size = Number.parseInt(this.#rest, 16);
      before = line + 2;
      after = 2;
    }
    if (this.#rest.length < before + size + after) return false;
    const body = this.#chunks + this.#rest.slice(before, before + size);
    this.#rest = this.#rest.slice(before + size + after);
    if (isChunked && size > 0) {
      this.#chunks = body;
      return true;
    }
    this.answers.push({ status, headers, body });
    this.#head = undefined;
    this.#chunks = '';
    return true;
  }
}
