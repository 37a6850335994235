// Owns: the head of a request, from bytes to what it says: HTTP/1.1 and 1.0 by RFC 9112, in its strictest reading, since a proxy
// in front may read anything else differently. It has no state and no socket.
// Does not: repair anything, or keep a header that nothing here reads.

/** Statuses of the answers to requests that cannot be read. */
export type UnreadableStatus = 400 | 408 | 431;

/** Most headers of a request, and bytes of each beside its name and value: blanks, the colon and the end of the line. */
const MOST_HEADERS = 1000;
const AROUND = 4;

/**
 * Of https://www.iana.org/assignments/http-methods, with those of caches and UPnP; without CONNECT, which asks for a tunnel, and
 * PRI, which is not for use.
 */
const METHODS: ReadonlySet<string> = new Set(
  (
    'ACL BIND CHECKOUT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS ' +
    'PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK ' +
    'UNSUBSCRIBE'
  ).split(' '),
);

/** RFC 9110 section 5.6.2. */
export const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";

/** The line of a header. Its value has visible characters, blanks, and bytes of other encodings. */
export const FIELD_LINE = `${TOKEN}:[\\t -~\\x80-\\xff]*\\r\\n`;

/** The whole lines at the start of a head. No part can match in two ways, so the time is in proportion to the length. */
const LINES = new RegExp(`^([A-Z-]+) ([!"$-~]+) HTTP/1\\.([01])\\r\\n(?:${FIELD_LINE})*`);
const FIELDS = new RegExp(`^(?:${FIELD_LINE})*`);

/** A part of a request line, or of an empty line before it. */
const PART_OF_LINE = /^(?:\r|[A-Z-]+(?: (?:[!"$-~]+(?: [HTP/1.0]*\r?)?)?)?)$/;

/** In absolute form, as proxies send it, or that of `OPTIONS *`. The origin form begins with a slash. */
const OTHER_TARGET = /^(?:\*|https?:\/\/([A-Za-z0-9\-._~%:[\]]+)(?:[/?].*)?)$/i;

/** The host of a URL, with a port; empty in a request for no host. */
const HOST = /^(?:[A-Za-z0-9\-._~%!$&'()*+,;=]*|\[[0-9A-Fa-f:.]+\])(?::[A-Za-z0-9.]*)?$/;

/** With the blanks around it: Node.js reads a tab as a part of the coding. */
const CHUNKED = /^ *chunked *$/i;
const LENGTH = /^\d{1,20}$/;

const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const CONTINUE = /(?:^|,)[\t ]*100-continue[\t ]*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;

export const [LF, CR] = [10, 13];

/** The headers that are read here: the object of each request has the same shape, so that reading one takes nanoseconds. */
class KnownHeaders {
  host: string | undefined = undefined;
  authorization: string | undefined = undefined;
  cookie: string | undefined = undefined;
  'session-key': string | undefined = undefined;
  'x-request-id': string | undefined = undefined;
  origin: string | undefined = undefined;
  'sec-fetch-site': string | undefined = undefined;
  'access-control-request-method': string | undefined = undefined;
  'x-forwarded-for': string | undefined = undefined;
  'if-match': string | undefined = undefined;
  'if-none-match': string | undefined = undefined;
  'idempotency-key': string | undefined = undefined;
  prefer: string | undefined = undefined;
  'accept-encoding': string | undefined = undefined;
  'content-encoding': string | undefined = undefined;
}

type Known = keyof KnownHeaders;
type Framing = 'content-length' | 'transfer-encoding' | 'connection' | 'expect' | 'upgrade';

/** The values of headers, by their names in lower case. Several values of one are joined, as RFC 9110 section 5.3 allows. */
export type RequestHeaders = { readonly [Name in Known]?: string | undefined };

/** The name of a header that is read, by the spellings in which it is sent most. */
const NAMES: ReadonlyMap<string, Known | Framing> = new Map(
  [
    ...(Object.keys(new KnownHeaders()) as Known[]),
    ...(['content-length', 'transfer-encoding', 'connection', 'expect', 'upgrade'] satisfies Framing[]),
  ].flatMap((name) => [
    [name, name],
    [name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase()), name],
  ]),
);
const NAME_LENGTHS: ReadonlySet<number> = new Set([...NAMES.keys()].map(({ length }) => length));

/** What a head says. */
export interface Head {
  /** Bytes. */
  readonly length: number;
  readonly method: string;
  readonly target: string;
  readonly headers: RequestHeaders;
  /** Whether it is HTTP/1.0, which has no chunks. */
  readonly isOld: boolean;
  /** Bytes of the body; undefined if it comes in chunks. */
  readonly bodyLength: number | undefined;
  /** Whether its client waits for `100 Continue`. */
  readonly isExpecting: boolean;
  /** Whether it is the last request of its connection. */
  readonly isLast: boolean;
}

/** @returns how many bytes are empty lines, which may follow a request (RFC 9112 section 2.2). */
export function emptyLines(bytes: Buffer): number {
  let end = 0;
  while (bytes[end] === CR && bytes[end + 1] === LF) end += 2;
  return end;
}

/**
 * @param bytes begin with the head.
 * @param limit bytes of target, names and values together.
 * @param seen how many of the bytes an earlier call had: their lines are read again only with the end of the head.
 * @returns undefined if more bytes may complete it; the status of the answer if it cannot be read.
 */
export function readHead(bytes: Buffer, limit: number, seen = 0): Head | UnreadableStatus | undefined {
  const most = limit + AROUND * MOST_HEADERS;
  if (seen > 0 && bytes.length < most) {
    if (!bytes.includes(LF, seen)) return undefined;
    const from = bytes.lastIndexOf(LF, seen - 1) + 1;
    const rest = from === 0 ? '\r\n' : bytes.toString('latin1', from);
    const end = FIELDS.exec(rest)?.[0].length ?? 0;
    if (!rest.startsWith('\r\n', end)) return rest.includes('\n', end) ? 400 : undefined;
  }
  const text = bytes.toString('latin1', 0, most);
  const [lines = '', method = '', target = '', minor] = LINES.exec(text) ?? [];
  const end = lines.length;
  if (end === 0 || !text.startsWith('\r\n', end)) {
    if (text.includes('\n', end) || (end === 0 && !PART_OF_LINE.test(text))) return 400;
    return text.length < most ? undefined : 431;
  }
  if (!METHODS.has(method)) return 400;
  const [form, authority] = target.startsWith('/') ? [target] : (OTHER_TARGET.exec(target) ?? []);
  if (form === undefined) return 400;
  const isOld = minor === '0';
  const headers = new KnownHeaders();
  let length: string | undefined;
  let coding: string | undefined;
  let connection = '';
  let isExpecting = false;
  let isUpgrade = false;
  let count = 0;
  let counted = target.length;
  // A copy: a part of the text would keep all of it in memory.
  const textOf = (from: number, to: number) => bytes.toString('latin1', from, to);
  for (let at = text.indexOf('\r\n') + 2; at < end; ) {
    const colon = text.indexOf(':', at);
    const endOfLine = text.indexOf('\r\n', colon);
    const name = NAME_LENGTHS.has(colon - at) ? nameOf(text.slice(at, colon)) : undefined;
    let first = colon + 1;
    while (first < endOfLine && isBlank(text, first)) first += 1;
    count += 1;
    counted += colon - at + endOfLine - first;
    at = endOfLine + 2;
    if (name === undefined) continue;
    let last = endOfLine;
    while (last > first && isBlank(text, last - 1)) last -= 1;
    switch (name) {
      case 'content-length':
        if (length !== undefined) return 400;
        length = text.slice(first, last);
        break;
      case 'transfer-encoding':
        if (coding !== undefined) return 400;
        coding = text.slice(colon + 1, endOfLine);
        break;
      case 'connection':
        connection += `,${text.slice(first, last)}`;
        break;
      case 'expect':
        isExpecting ||= !isOld && CONTINUE.test(text.slice(first, last));
        break;
      case 'upgrade':
        isUpgrade = true;
        break;
      case 'host':
        if (headers.host !== undefined) return 400;
        headers.host = textOf(first, last);
        break;
      case 'authorization':
        headers.authorization ??= textOf(first, last);
        break;
      default:
        headers[name] = (headers[name] === undefined ? '' : `${headers[name]}, `) + textOf(first, last);
    }
  }
  if (count > MOST_HEADERS || counted >= limit) return 431;
  if (headers.host === undefined ? !isOld : !HOST.test(headers.host)) return 400;
  headers.host = authority ?? headers.host; // in absolute form, the target says which host is meant (RFC 9112 section 3.2.2)
  if (coding !== undefined && (isOld || length !== undefined || !CHUNKED.test(coding))) return 400;
  if (length !== undefined && !LENGTH.test(length)) return 400;
  if (length?.length === 20 && BigInt(length) >= 2n ** 64n) return 400;
  const isClosing = CLOSE.test(connection) || (isOld && !KEEP_ALIVE.test(connection));
  return {
    length: end + 2,
    method,
    target,
    headers,
    isOld,
    bodyLength: coding === undefined ? Number(length ?? 0) : undefined,
    isExpecting,
    isLast: isUpgrade || isClosing,
  };
}

function isBlank(text: string, at: number): boolean {
  return text[at] === ' ' || text[at] === '\t';
}

function nameOf(sent: string): Known | Framing | undefined {
  return NAMES.get(sent) ?? NAMES.get(sent.toLowerCase());
}
