// Owns: the operations listener: a separate port for health checks, metrics and the description of the API (rule 31).
// Does not: affect the service, which responds to its clients whether or not this port does.

import { MISDIRECTED_REQUEST } from '../api/envelope.ts';
import { type Config, isLoopback } from '../config.ts';
import type { Answer, HeaderList } from '../http/answer.ts';
import { namesThisMachine } from '../http/host.ts';
import { pathOf } from '../http/path.ts';
import type { Request } from '../http/request.ts';
import { HttpServer } from '../http/server.ts';
import { listenIfFree, PortRefused } from '../listen.ts';
import type { Log } from '../log/log.ts';
import { PROMETHEUS_TEXT, prometheusText } from '../metrics/prometheus.ts';
import { readProjectFile } from '../project.ts';
import type { Service } from '../service.ts';
import type { Times } from '../times.ts';
import { within } from '../within.ts';
import type { OperationsHandler } from './asset.ts';
import { docsRoutes } from './docs.ts';
import { manualRoutes } from './manual.ts';

/** Bytes. */
const HEADER_LIMIT = 16 * 1024;

/** More than operators, their tools and a browser need. */
const MAX_CONNECTIONS = 64;

const TEXT: HeaderList = ['content-type', 'text/plain; charset=utf-8'];
const JSON_HEADERS: HeaderList = ['content-type', 'application/json; charset=utf-8'];
const NO_MANUAL =
  'The manual has not been made. Run `npm ci` and `npm run build:site` in the folder of the service, then start it again.';
const UNREADABLE = { 400: 'Bad request', 408: 'Request timeout', 431: 'Request header fields too large' };

export interface OperationsListener {
  /** `http://host:port` as a browser on this machine would write it. */
  readonly url: string;
  readonly port: number;
  /** Call when the service serves: until then, /readyz answers `starting`. */
  serve(service: Service): void;
  /** Call when the service is about to end: from then on, /readyz answers `draining`. */
  drain(): void;
  close(): Promise<void>;
}

/**
 * Opens the listener; /readyz answers `starting`.
 * @returns the reason if the default port cannot be opened.
 * @throws OperatorError if a port that the operator set cannot be opened, or ADMIN_HOST cannot be used.
 */
export async function openOperations(
  config: Config,
  log: Log,
  times: Pick<Times, 'admin' | 'http'>,
): Promise<OperationsListener | PortRefused> {
  const { admin, adminHost: host } = config;
  const onlyThisMachine = isLoopback(host);
  let service: Service | undefined;
  let unready = 'starting';

  const servicePort = () => (service === undefined ? config.port : portOf(service.url));
  const pagePort = () => (service?.pageUrl === undefined ? undefined : portOf(service.pageUrl));
  const manual = await manualRoutes(log);
  const hasManual = '/manual/' in manual;
  const noManual = () => text(404, NO_MANUAL);
  const routes = new Map(
    Object.entries<OperationsHandler>({
      '/livez': () => text(200, 'alive'),
      '/readyz': async () => {
        if (service === undefined) return text(503, unready);
        const answers = await within(times.admin.ready, service.storeAnswers());
        return answers ? text(200, 'ready') : text(503, 'the store does not answer');
      },
      '/metrics': async () => {
        if (service === undefined) return text(503, unready);
        const headers = ['content-type', PROMETHEUS_TEXT];
        return { status: 200, headers, body: prometheusText(await service.metrics()) };
      },
      '/openapi.json': async ({ headers }) => {
        const { host: asked = 'localhost' } = headers;
        const document = JSON.parse(String(await readProjectFile('docs/openapi/openapi.json')));
        document.servers[0].url = `http://${asked.replace(/:\d*$/, '')}:${servicePort()}`;
        return { status: 200, headers: JSON_HEADERS, body: JSON.stringify(document) };
      },
      ...(hasManual ? manual : { '/manual': noManual, '/manual/': noManual }),
      ...docsRoutes(servicePort, pagePort, hasManual ? 'manual/' : undefined),
    }),
  );
  const { request, keepAlive } = times.admin;
  const timesOfPort = { ...times.http, headers: request, wholeRequest: request, keepAlive };
  const http = new HttpServer(
    HEADER_LIMIT,
    timesOfPort,
    handle,
    (status) => text(status, UNREADABLE[status]),
    (error) => log.error({ err: error }, 'an answer could not be sent'),
  );
  http.server.maxConnections = MAX_CONNECTIONS;

  const url = await listenIfFree(admin.required, http.server, admin.port, host, 'ADMIN_PORT', 'ADMIN_HOST');
  if (url instanceof PortRefused) return url;

  return {
    url,
    port: portOf(url),
    serve(running) {
      service = running;
    },
    drain() {
      service = undefined;
      unready = 'draining';
    },
    close: () => http.close(0, 0),
  };

  async function handle(request: Request): Promise<void> {
    const { method, target } = request;
    const handler =
      method === 'GET' || method === 'HEAD' ? routes.get(pathOf(target)?.decoded ?? '') : undefined;
    let answer: Answer;
    try {
      if (onlyThisMachine && !namesThisMachine(request.headers.host)) answer = MISDIRECTED_REQUEST;
      else answer = handler === undefined ? text(404, 'Not found') : await handler(request);
    } catch (error) {
      log.error({ err: error }, 'the operations listener failed to answer');
      answer = text(500, 'Internal server error');
    }
    request.answer(answer, '', () => {});
  }
}

function text(status: number, line: string): Answer {
  return { status, headers: TEXT, body: `${line}\n` };
}

/** @param url of HTTP, which leaves out port 80. */
function portOf(url: string): number {
  return Number(new URL(url).port || 80);
}
