// Owns: the service and the front that runtimes run the scenario of the client against (test/fixtures/client-scenario.js).

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { fill } from './books.ts';
import { type Front, passOn, startFront } from './front.ts';
import { SQLITE, startTestService } from './service.ts';

/** @param serve answers the other requests. */
export async function startScenario(
  context: TestContext,
  serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void = (_, outgoing) => outgoing.destroy(),
): Promise<Front> {
  const dbUrl = await SQLITE.freshUrl();
  const books = Array.from({ length: 1500 }, (_, index) => {
    return { id: index + 1, title: `${index + 1} `.padEnd(1000, 'x'), author: '', year: 0 };
  });
  await fill(dbUrl, books);
  const service = await startTestService(dbUrl);
  context.after(() => service.stop());
  let breaking: ServerResponse | undefined;
  const front = await startFront(context, (incoming, outgoing) => {
    const { method, url = '', socket } = incoming;
    const [, behaviour = '', path = ''] = /^\/(\w+)(\/.*)$/.exec(url) ?? [];
    const isFirst = front.seen.filter((line) => line === `${method} ${url}`).length === 1;
    incoming.url = path;
    const pass = (give?: () => void) => passOn(service, incoming, outgoing, give);
    const begin = () => outgoing.write('{"status":200,"message":"","data":[{"id":1},{"id":2}');
    const behaviours: Record<string, () => unknown> = {
      plain: pass,
      dead: () => socket.destroy(),
      silent: () => path === '/token' && pass(),
      losing: () => pass(isFirst && path !== '/token' ? () => socket.destroy() : undefined),
      breaking() {
        if (path === '/token') return pass();
        begin();
        outgoing.write(',{'); // the list breaks off within a book
        breaking = outgoing;
      },
      endless() {
        if (path === '/token') return pass();
        outgoing.once('close', () => front.seen.push(`closed ${url}`));
        begin();
        const more = () => {
          for (let id = 3; outgoing.write(`,{"id":${id}}`); id += 1);
        };
        outgoing.on('drain', more);
        more();
      },
    };
    if (url === '/seen') outgoing.end(JSON.stringify(front.seen));
    else if (url === '/break') outgoing.end(breaking?.destroy() && '');
    else (behaviours[behaviour] ?? (() => serve(Object.assign(incoming, { url }), outgoing)))();
  });
  return front;
}
