// Owns: what is promised of the head of a request, and of a body in chunks: their meaning by RFC 9110 and 9112, found word by word
// and without regular expressions.

import { METHODS } from 'node:http';
import { Chunks } from '../../src/http/chunks.ts';
import { type Head, readHead } from '../../src/http/head.ts';
import { assertSame, type Input, inPieces, type Reader } from './reader.ts';

const DIGITS = '0123456789';
const HEXADECIMAL = `${DIGITS}abcdefABCDEF`;
const CAPITALS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const LETTERS_AND_DIGITS = `${CAPITALS}${CAPITALS.toLowerCase()}${DIGITS}`;
const TOKEN = `${LETTERS_AND_DIGITS}!#$%&'*+-.^_\`|~`;
const HOST = `${LETTERS_AND_DIGITS}-._~%!$&'()*+,;=`;

const consistsOf = (signs: string, text: string) => text.split('').every((sign) => signs.includes(sign));
const isFilledWith = (signs: string, text: string) => text !== '' && consistsOf(signs, text);
const isVisible = (text: string) => text !== '' && text.split('').every((sign) => sign > ' ' && sign <= '~');

/** @param blanks that are no part of a value. */
function trimmed(text: string, blanks = '\t '): string {
  const signs = text.split('');
  const isPart = (sign: string) => !blanks.includes(sign);
  return text.slice(Math.max(0, signs.findIndex(isPart)), 1 + signs.findLastIndex(isPart));
}

export const headOfARequest: Reader = (input) => {
  const limit = [16, 80, 1024][input.choice(3)] as number;
  const step = input.choice(5);
  const { content, text } = input;
  if (content.length === 0) return;
  const expected = headIn(text, limit);
  assertSame(seen(readHead(content, limit)), expected, 'the head');
  let [arrived, judged] = [0, 0];
  let head: ReturnType<typeof readHead>;
  for (const piece of inPieces(content, step)) {
    head ??= readHead(content.subarray(0, arrived + piece.length), limit, arrived);
    arrived += piece.length;
    if (judged === 0 || piece.includes('\n')) judged = arrived; // else nothing is known of the line before its end
  }
  assertSame(seen(head), headIn(text.slice(0, judged), limit), `the head in pieces of ${step}`);
};

/** As JSON has it. */
function seen(head: Head | number | undefined): unknown {
  if (typeof head !== 'object') return head;
  const headers = Object.entries(head.headers).filter(([, value]) => value !== undefined);
  return { ...head, headers: headers.toSorted(([one], [other]) => (one < other ? -1 : 1)) };
}

const SINGLE = ['content-length', 'host', 'transfer-encoding'];
const READ = [
  ...['accept-encoding', 'access-control-request-method', 'authorization', 'content-encoding', 'host'],
  ...[
    ...['idempotency-key', 'if-match', 'if-none-match', 'origin', 'prefer', 'sec-fetch-site'],
    ...['x-forwarded-for'],
  ],
  'x-request-id',
];

/** @returns the meaning; a status if it has none; undefined if bytes are missing. */
function headIn(text: string, limit: number): unknown {
  const lines = text.split('\r\n');
  const end = lines.slice(0, -1).indexOf('', 1);
  const [first = '', ...others] = end === -1 ? lines.slice(0, -1) : lines.slice(0, end);
  const rest = end === -1 ? (lines.at(-1) as string) : '';
  const isAfterFirst = lines.length > 1;
  if (isAfterFirst ? !isRequestLine(first) : !beginsRequestLine(rest)) return 400;
  if (others.some((line) => !isField(line)) || rest.includes('\n')) return 400;
  if (end === -1) return undefined;

  const [method = '', target = '', version] = first.split(' ');
  if (!METHODS.includes(method) || method === 'CONNECT' || !isTarget(target)) return 400;
  const fields = others.map((line) => {
    const colon = line.indexOf(':');
    return { name: line.slice(0, colon).toLowerCase(), sent: line.slice(colon + 1) };
  });
  const valuesOf = (name: string) => fields.filter((field) => field.name === name).map(({ sent }) => sent);
  if (SINGLE.some((name) => valuesOf(name).length > 1)) return 400;
  const lengths = fields.map(({ name, sent }) => name.length + trimmed(`${sent}.`).length - 1);
  if (lengths.reduce((sum, one) => sum + one, target.length) >= limit) return 431;

  const isOld = version === 'HTTP/1.0';
  const [host] = valuesOf('host').map((sent) => trimmed(sent));
  const [coding] = valuesOf('transfer-encoding').map((sent) => trimmed(sent, ' ').toLowerCase());
  const [length] = valuesOf('content-length').map((sent) => trimmed(sent));
  if (host === undefined ? !isOld : !isHost(host)) return 400;
  if (coding !== undefined && (coding !== 'chunked' || isOld || length !== undefined)) return 400;
  if (length !== undefined && !(isFilledWith(DIGITS, length) && length.length <= 20)) return 400;
  if (BigInt(length ?? 0) >= 2n ** 64n) return 400;
  const options = valuesOf('connection').flatMap((sent) => sent.split(','));
  const hasOption = (option: string) => options.some((one) => trimmed(one).toLowerCase() === option);
  const headers = READ.flatMap((name) => {
    const authority = name === 'host' ? authorityOf(target) : undefined;
    const values = authority === undefined ? valuesOf(name).map((sent) => trimmed(sent)) : [authority];
    return values.length === 0 ? [] : [[name, name === 'authorization' ? values[0] : values.join(', ')]];
  });
  return {
    length: lines.slice(0, end + 1).join('\r\n').length + 2,
    method,
    target,
    headers,
    isOld,
    bodyLength: coding === undefined ? Number(BigInt(length ?? 0)) : undefined,
    isExpecting: !isOld && valuesOf('expect').some((sent) => trimmed(sent).toLowerCase() === '100-continue'),
    isLast: valuesOf('upgrade').length > 0 || hasOption('close') || (isOld && !hasOption('keep-alive')),
  };
}

function isRequestLine(line: string): boolean {
  const [method = '', target = '', version = '', ...more] = line.split(' ');
  if (!isFilledWith(`${CAPITALS}-`, method) || !isShown(target) || more.length > 0) return false;
  return version === 'HTTP/1.1' || version === 'HTTP/1.0';
}

/** Whether the beginning of a line may be that of a request, or of an empty line before one. */
function beginsRequestLine(text: string): boolean {
  const [method = '', target, version = '', ...more] = text.split(' ');
  if (text === '\r') return true;
  if (!isFilledWith(`${CAPITALS}-`, method) || more.length > 0) return false;
  if (target === undefined || text === `${method} `) return true;
  const word = version.endsWith('\r') ? version.slice(0, -1) : version;
  return isShown(target) && consistsOf('HTTP/1.0', word);
}

function isShown(target: string): boolean {
  return isVisible(target) && !target.includes('#');
}

function isField(line: string): boolean {
  const colon = line.indexOf(':');
  const isValue = line
    .slice(colon + 1)
    .split('')
    .every((sign) => sign === '\t' || (sign >= ' ' && sign !== '\x7f'));
  return isFilledWith(TOKEN, line.slice(0, colon)) && isValue && colon > 0;
}

function isTarget(target: string): boolean {
  if (target.startsWith('/') || target === '*') return true;
  return isFilledWith(`${LETTERS_AND_DIGITS}-._~%:[]`, authorityOf(target) ?? '');
}

/** Which host a target in absolute form means. */
function authorityOf(target: string): string | undefined {
  const scheme = ['http://', 'https://'].find((one) => target.toLowerCase().startsWith(one));
  if (scheme === undefined) return undefined;
  const rest = target.slice(scheme.length);
  const end = rest.split('').findIndex((sign) => sign === '/' || sign === '?');
  return end === -1 ? rest : rest.slice(0, end);
}

function isHost(host: string): boolean {
  const isAddress = host.startsWith('[');
  const colon = host.indexOf(':', isAddress ? host.indexOf(']') : 0);
  const [name, port] = colon === -1 ? [host, ''] : [host.slice(0, colon), host.slice(colon + 1)];
  const isName = isAddress
    ? name.endsWith(']') && isFilledWith(`${HEXADECIMAL}:.`, name.slice(1, -1))
    : consistsOf(HOST, name);
  return isName && consistsOf(`${LETTERS_AND_DIGITS}.`, port);
}

/** What has been read of a body in chunks. */
interface Body {
  data: string;
  /** Bytes. */
  length: number;
  status?: number;
  isWhole: boolean;
}

export const bodyInChunks: Reader = (input) => {
  const limit = [0, 4, 40][input.choice(3)] as number;
  const step = input.choice(5);
  const expected = chunksIn(input.text, limit);
  assertSame(bodyIn(input, 0, limit), expected, 'the body');
  assertSame(bodyIn(input, step, limit), expected, `the body in pieces of ${step}`);
};

/** As a connection reads it. */
function bodyIn({ content }: Input, step: number, limit: number): Body {
  const chunks = new Chunks(limit);
  let [data, length, arrived] = ['', 0, 0];
  for (const piece of inPieces(content, step)) {
    arrived += piece.length;
    while (chunks.status === undefined && !chunks.isWhole) {
      const read = chunks.read(content.subarray(length, arrived), (part) => {
        data += part.toString('latin1');
      });
      if (read === 0) break;
      length += read;
    }
  }
  return { data, length, isWhole: chunks.isWhole, status: chunks.status } as Body;
}

function chunksIn(text: string, limit: number): Body {
  const body: Body = { data: '', length: 0, isWhole: false };
  const fail = (status: number) => ({ ...body, status });
  /** The next line, with its end if that has arrived. */
  const next = () => text.slice(body.length, text.indexOf('\n', body.length) + 1 || text.length);
  for (let isLast = false; !isLast; ) {
    const line = next();
    if (line === '') return body;
    if (!line.endsWith('\n')) return HEXADECIMAL.includes(line[0] as string) ? body : fail(400);
    const [size = '', ...extensions] = partsOf(line.slice(0, -2));
    if (!line.endsWith('\r\n') || !isFilledWith(HEXADECIMAL, size) || size.length > 13) return fail(400);
    if (!extensions.every(isExtension)) return fail(400);
    body.length += line.length;
    const count = Number.parseInt(size, 16);
    isLast = count === 0;
    if (isLast) break;
    const data = text.slice(body.length, body.length + count);
    body.data += data;
    body.length += data.length;
    const after = next();
    if (data.length < count || after === '') return body;
    if (after === '\r') return body;
    if (after !== '\r\n') return fail(400);
    body.length += 2;
  }
  for (let trailers = 0; ; ) {
    const line = next();
    trailers += line.length;
    if (trailers > limit) return fail(431);
    if (!line.endsWith('\n')) return body;
    if (line !== '\r\n' && !isTrailer(line)) return fail(400);
    body.length += line.length;
    if (line === '\r\n') return { ...body, isWhole: true };
  }
}

/** @param text divided by semicolons that are not in quotation marks. */
function partsOf(text: string): string[] {
  const parts = [''];
  let isQuoted = false;
  for (const sign of text) {
    if (sign === '"') isQuoted = !isQuoted;
    if (sign === ';' && !isQuoted) parts.push('');
    else parts[parts.length - 1] += sign;
  }
  return parts;
}

function isExtension(text: string): boolean {
  const equals = text.indexOf('=');
  if (equals === -1) return isFilledWith(TOKEN, text);
  const [name, value] = [text.slice(0, equals), text.slice(equals + 1)];
  const inner = value.slice(1, -1);
  const isQuoted = value.length > 1 && value.startsWith('"') && value.endsWith('"');
  const isText = inner
    .split('')
    .every((sign) => sign === '\t' || (sign >= ' ' && sign <= '~' && !'"\\'.includes(sign)));
  return isFilledWith(TOKEN, name) && (isFilledWith(TOKEN, value) || (isQuoted && isText));
}

const NO_TRAILER = ['connection', 'content-length', 'expect', 'host', 'transfer-encoding', 'upgrade'];

function isTrailer(line: string): boolean {
  const name = line.slice(0, line.indexOf(':')).toLowerCase();
  return line.endsWith('\r\n') && isField(line.slice(0, -2)) && !NO_TRAILER.includes(name);
}
