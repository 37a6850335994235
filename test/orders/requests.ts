// Owns: requests that are made up at random, some of them wrong, with what their handlers do; and their text.

import fc from 'fast-check';

const SECOND = 1000;
const MEBIBYTE = 1024 * 1024;

export const often = <Value>(usual: Value, ...others: Value[]) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(usual) },
    { weight: 2, arbitrary: fc.constantFrom(...others) },
  );

export const specs = fc.record({
  kind: often('GET', 'HEAD', 'POST', 'HTTP/1.0', 'HTTP/1.0 keep-alive'),
  body: often('none', 'length', 'long', 'chunks', 'many chunks'),
  isExpecting: fc.boolean(),
  lines: often('', 'connection: close\r\n', 'upgrade: h2c\r\n'),
  follow: often('', '\r\n'),
  fault: fc.oneof(
    { weight: 9, arbitrary: fc.constant('none') },
    { weight: 1, arbitrary: fc.constantFrom('head', 'chunk') },
  ),
  /** How the handler gets the body, and when it answers. */
  takes: often('at once', 'later', 'never', 'whole', 'too long'),
  answers: often(
    'later',
    'at once',
    'after the body',
    'with the end of the body',
    'with its beginning',
    'when the client leaves',
  ),
  /** Milliseconds before. */
  delay: often(0, 0, 40 * SECOND),
  answer: often(
    'short',
    'long',
    'bytes',
    'stream',
    'stream',
    'breaks',
    'silent',
    'none',
    'wrong',
    'fails',
    'slow stream',
  ),
  room: often(10, 5000, 70 * MEBIBYTE, -70 * MEBIBYTE),
});

type Spec = typeof specs extends fc.Arbitrary<infer Value> ? Value : never;

/** A request as it is made up. */
export interface Sent {
  readonly spec: Spec;
  readonly name: string;
  readonly method: string;
  readonly body: string;
  readonly isLast: boolean;
  readonly begin: number;
  readonly endOfHead: number;
  /** Where it is known to be wrong, or whole. */
  readonly end: number;
  readonly fault: 'none' | 'head' | 'chunk';
}

/** @param begin where it begins in what its client sends. */
export function requestOf(spec: Spec, name: string, begin: number): Sent & { readonly text: string } {
  const { kind, body: how, isExpecting, lines, follow } = spec;
  const isOld = kind.startsWith('HTTP/1.0');
  const method = kind.startsWith('HTTP') ? 'GET' : kind;
  const isInChunks = how.endsWith('chunks') && !isOld;
  const size = { none: 0, length: 30, long: 300, chunks: 40, 'many chunks': 150 }[how] ?? 0;
  const body = 'GET / HTTP/1.1\r\n\r\n'.repeat(20).slice(0, size);
  const pieces = isInChunks ? (body.match(how === 'chunks' ? /.{1,16}/gs : /./gs) ?? []) : [];
  const isWrongChunk = isInChunks && spec.fault === 'chunk';
  const fault = spec.fault === 'head' ? 'head' : isWrongChunk ? 'chunk' : 'none';
  const keep = kind.endsWith('keep-alive') ? 'connection: keep-alive\r\n' : '';
  const framing = isInChunks
    ? 'transfer-encoding: chunked\r\n'
    : size > 0
      ? `content-length: ${size}\r\n`
      : '';
  const wrong = fault === 'head' ? 'x : y\r\n' : '';
  const expect = isExpecting ? 'expect: 100-continue\r\n' : '';
  const head = `${method} /${name} HTTP/1.${isOld ? 0 : 1}\r\nhost: t\r\n${keep}${framing}${expect}${wrong}${lines}\r\n`;
  const chunks = pieces.map((piece) => `${piece.length.toString(16)};a=b\r\n${piece}\r\n`).join('');
  const end = isWrongChunk ? 'x\r\n' : '0\r\nx: y\r\n\r\n';
  const sent = isInChunks ? chunks + end : body;
  const text = head + sent;
  return {
    ...{ spec, name, method, body, fault, begin },
    isLast: lines !== '' || kind === 'HTTP/1.0',
    endOfHead: begin + head.length,
    end: begin + text.length,
    text: text + (fault === 'none' ? follow : ''),
  };
}
