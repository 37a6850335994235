// Owns: a service that breaks promises: the right one, behind a proxy. A request and an answer are texts here: `METHOD PATH` or
// the status, a line for each header, an empty line, the body.

import { once } from 'node:events';
import { Agent, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type Rule, titleOf } from '../../conformance/rule.ts';
import { RULES } from '../../conformance/rules.ts';
import { Service } from '../../conformance/service.ts';
import { LIMITS } from './client.ts';
import { startFront } from './front.ts';
import { ENVIRONMENT, type RunningService, SECRET, SQLITE, startTestService } from './service.ts';

/** @param asked the request; its body has one character for each byte. @param pass gets the answer of the right service. */
export type Fault = (asked: string, pass: Pass) => string | Promise<string>;
type Pass = (asked: string) => Promise<string>;
type Replacement = (part: string, ...groups: string[]) => string;

/** Another request reaches the service. */
export const ask =
  (pattern: RegExp, by: string | Replacement): Fault =>
  (asked, pass) =>
    pass(asked.replace(pattern, by as string));

/** Another answer reaches the client. The pattern sees `METHOD PATH` on a line before it. */
export const give =
  (pattern: RegExp, by: string | Replacement): Fault =>
  async (asked, pass) => {
    const [line] = asked.split('\n', 1);
    return `${line}\n${await pass(asked)}`.replace(pattern, by as string).replace(/^.*\n/, '');
  };

/** Such requests do not reach the service. */
export const refuse =
  (pattern: RegExp, status = 400, message = 'Refused'): Fault =>
  (asked, pass) =>
    pattern.test(asked)
      ? `${status}\ncontent-type: application/json\n\n${JSON.stringify({ status, message, data: null })}`
      : pass(asked);

export interface WrongService {
  readonly url: string;
  readonly right: RunningService;
  /** The fault of the moment. */
  fault: Fault | undefined;
  /** Failed logins of one client do not count for the next one (rule 29). */
  client: number;
  stop(): Promise<void>;
}

export async function startWrongService(): Promise<WrongService> {
  const right = await startTestService(await SQLITE.freshUrl(), { TRUST_PROXY: '127.0.0.1' });
  const agent = new Agent({ keepAlive: true });
  const ends: (() => unknown)[] = [() => agent.destroy(), right.stop];
  const { url } = await startFront({ after: (work) => ends.unshift(work) }, (request, response) => {
    const { fault = (asked, pass) => pass(asked), client } = wrong;
    const reply = async () => {
      const body = (await buffer(request)).toString('latin1');
      const asked = `${request.method} ${request.url}\n${linesOf(request.headers)}\n${body}`;
      end(response, request.method, await fault(asked, (text) => pass(right.pageUrl, agent, text, client)));
    };
    reply().catch(() => response.destroy()); // a client that leaves waits for no answer
  });
  const stop = async () => {
    for (const work of ends) await work();
  };
  const wrong: WrongService = { url, right, fault: undefined, client: 0, stop };
  return wrong;
}

/** The service as the kit sees it. */
export const kitOf = (url: string) => {
  const { AUTH_USERNAME: username, AUTH_PASSWORD: password } = ENVIRONMENT;
  return new Service(new URL(url), { username, password, secret: SECRET }, LIMITS);
};

/** @param beginning of its title: `rule 3` does not begin the title of rule 32. */
export function ruleOf(beginning: string): Rule {
  const title = new RegExp(`^${RegExp.escape(beginning)}(?!\\d)`);
  const rule = RULES.find((one) => title.test(titleOf(one)));
  if (rule === undefined) throw new Error(`no rule begins with ${beginning}`);
  return rule;
}

async function pass(target: string, agent: Agent, asked: string, client: number): Promise<string> {
  const [, method, path = '', lines = '', text = ''] =
    /^(\S+) (.*)\n((?:.+\n)*)\n([\s\S]*)$/.exec(asked) ?? [];
  const body = Buffer.from(text, 'latin1');
  const headers = headersOf(lines);
  if (body.length > 0 || 'content-length' in headers) headers['content-length'] = String(body.length);
  headers['x-forwarded-for'] = `198.51.${client >> 8}.${client & 255}`;
  const request = send(target, { agent, method, path, headers }).end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return `${response.statusCode}\n${linesOf(response.headers)}\n${await buffer(response)}`;
}

function end(response: ServerResponse, method: string | undefined, given: string): void {
  const [, status, lines = '', body = ''] = /^(\d+)\n((?:.+\n)*)\n([\s\S]*)$/.exec(given) ?? [];
  const headers = headersOf(lines);
  const isBare = method === 'HEAD' || status === '304';
  if (!isBare) headers['content-length'] = String(Buffer.byteLength(body));
  response.writeHead(Number(status), headers).end(isBare ? '' : body);
}

/** Without those that are about one connection. */
const linesOf = (headers: IncomingMessage['headers']) =>
  Object.entries(headers)
    .filter(([name]) => !['connection', 'keep-alive', 'transfer-encoding'].includes(name))
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('');

const headersOf = (lines: string): Record<string, string> =>
  Object.fromEntries([...lines.matchAll(/^(.*?): (.*)$/gm)].map(([, name, value]) => [name, value]));
