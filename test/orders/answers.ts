// Owns: reading what a server has written as strictly as HTTP/1.1 says, without any code of the service.

export interface ReadAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/**
 * Reads answers.
 * @param methods of the requests.
 * @param hasEnded whether the server has closed its side, which may be the end of a body.
 * @returns the whole ones, and whether bytes are left.
 * @throws if they are not answers.
 */
export function readAnswers(bytes: Buffer, methods: readonly string[], hasEnded: boolean) {
  const answers: ReadAnswer[] = [];
  let text = bytes.toString('latin1');
  let count = 0;
  while (text !== '') {
    const [whole, statusText, lines = ''] = HEAD.exec(text) ?? [];
    if (whole === undefined) {
      if (text.includes('\r\n\r\n')) throw new Error(`no head: ${text}`);
      return { answers, isCut: true };
    }
    const status = Number(statusText);
    const headers = new Map<string, string>();
    for (const line of lines.split('\r\n').slice(0, -1)) {
      const [name = '', value = ''] = line.split(': ', 2);
      if (headers.has(name)) throw new Error(`two headers ${name}`);
      headers.set(name, value);
    }
    const method = methods[count];
    if (status !== 100) count += 1;
    const after = text.slice(whole.length);
    const isBare = status === 100 || status === 204 || status === 304 || method === 'HEAD';
    const body = isBare ? { end: 0, body: '' } : bodyOf(after, headers, hasEnded);
    if (body === undefined) return { answers, isCut: true };
    answers.push({ status, headers, body: Buffer.from(body.body, 'latin1').toString() });
    text = after.slice(body.end);
  }
  return { answers, isCut: false };
}

const HEAD = /^HTTP\/1\.1 (\d{3}) [A-Z][A-Za-z -]*\r\n((?:[a-z-]+: [ -~]+\r\n)*)\r\n/;

function bodyOf(text: string, headers: ReadonlyMap<string, string>, hasEnded: boolean) {
  const length = headers.get('content-length');
  const coding = headers.get('transfer-encoding');
  if (length !== undefined && coding !== undefined) throw new Error('two lengths');
  if (length !== undefined) {
    const end = Number(length);
    return text.length < end ? undefined : { end, body: text.slice(0, end) };
  }
  if (coding === undefined) return hasEnded ? { end: text.length, body: text } : undefined;
  if (coding !== 'chunked') throw new Error(`coding ${coding}`);
  let body = '';
  for (let at = 0; ; ) {
    const [line, digits = ''] = /^([0-9a-f]+)\r\n/.exec(text.slice(at)) ?? [];
    if (line === undefined) {
      if (!/^[0-9a-f]*\r?$/.test(text.slice(at))) throw new Error(`no chunk: ${text.slice(at)}`);
      return undefined;
    }
    const begin = at + line.length;
    const end = begin + Number.parseInt(digits, 16);
    if (text.length < end + 2) return undefined;
    if (text.slice(end, end + 2) !== '\r\n') throw new Error(`no end of a chunk: ${text.slice(end)}`);
    body += text.slice(begin, end);
    at = end + 2;
    if (begin === end) return { end: at, body };
  }
}
