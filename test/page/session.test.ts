// The session of the page, over a socket: the rules of the kit, which only the page's port has; time, other secrets and other
// passwords; and that the port of the service has none. Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { perform } from '../../conformance/checking.ts';
import { titleOf } from '../../conformance/rule.ts';
import { SESSIONS } from '../../conformance/sessions.ts';
import { TIMES, type Times } from '../../src/times.ts';
import { bare, request, type Target } from '../support/client.ts';
import {
  pageOf,
  type RunningService,
  SQLITE,
  servedAt,
  startTestService,
  startWithoutLogin,
} from '../support/service.ts';
import { kitOf } from '../support/wrong-service.ts';

const SECRET = 'a secret of sessions that is long enough';
const EXPIRED = { status: 401, message: 'Session expired', data: null };

type Session = Readonly<Record<'cookie' | 'session-key' | 'host', string>>;

describe('the session of the page', () => {
  for (const rule of SESSIONS) {
    test(titleOf(rule), async (context) => {
      const kit = kitOf(pageOf(await start(context)).url);
      context.after(() => kit.close());
      await perform(rule, kit);
    });
  }

  test('S1, A1 to A3: the port of the service has no sessions, whatever a request brings', async (context) => {
    const service = await start(context);
    const { host: _, ...session } = await logIn(pageOf(service));
    const headers = { ...session, host: new URL(service.pageUrl).host };
    for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
      assert.deepEqual(bare(await request(service, method, '/session', { headers })), {
        status: 404,
        message: 'Not found',
        data: null,
      });
    const { status, message } = await request(service, 'GET', '/books', { headers });
    assert.deepEqual([status, message], [401, 'Authorization token required']);
    assert.equal(
      (await request(service, 'GET', '/books', { headers, token: service.client.token })).status,
      200,
    );
  });

  test('S1, rule 32: no page of another origin may log in, not even one that CORS_ORIGINS names', async (context) => {
    const shop = 'https://shop.example';
    const page = pageOf(await start(context, { CORS_ORIGINS: shop }));
    const asked = { origin: shop, 'access-control-request-method': 'PUT' };
    const preflight = await request(page, 'OPTIONS', '/session', { headers: asked });
    assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-origin')], [405, null]);
    const body = { username: 'librarian', password: 'correct horse' };
    const login = await request(page, 'POST', '/session', { body, headers: { origin: shop } });
    assert.deepEqual(bare(login), { status: 403, message: 'Origin not allowed', data: null });
    const session = await logIn(page);
    const answer = await request(page, 'GET', '/books', { headers: { ...session, origin: shop } });
    assert.equal(answer.status, 403);
  });

  test('S1: the name of the cookie has the port of the host: catalogues of one host have one each', async (context) => {
    const page = pageOf(await start(context));
    for (const [host, name] of [
      ['127.0.0.1:8082', 'book-catalogue-8082'],
      ['[::1]:8082', 'book-catalogue-8082'],
      ['books.example.org', 'book-catalogue'],
      ['BOOKS.example.org', 'book-catalogue'],
    ] as const) {
      const session = await logIn(page, host);
      assert.match(session.cookie, new RegExp(`^${name}=`));
      const headers = { ...session, host: host.toLowerCase() };
      assert.equal((await request(page, 'GET', '/book/1', { headers })).status, 404, 'a host has no case');
    }
  });

  test('S2: a session ends after its idle time, and after its longest time however often it is renewed', async (context) => {
    const page = pageOf(await start(context));
    const began = Date.UTC(2030, 0, 1);
    const at = (minutes: number) => {
      context.mock.timers.reset();
      context.mock.timers.enable({ apis: ['Date'], now: began + minutes * 60_000 });
    };
    at(0);
    let session = await logIn(page);
    const first = session;
    const isValid = async (headers: Session) =>
      (await request(page, 'GET', '/book/1', { headers })).status === 404;
    at(29.99);
    assert.ok(await isValid(first));
    at(30.01);
    assert.ok(!(await isValid(first)));
    assert.deepEqual(bare(await request(page, 'PUT', '/session', { headers: first })), EXPIRED);
    at(0);
    for (let minutes = 25; minutes < 720; minutes += 25) {
      at(minutes);
      const { headers, data } = await request(page, 'PUT', '/session', { headers: session });
      assert.equal(data.seconds, Math.min(1800, (720 - minutes) * 60));
      session = { ...session, cookie: cookieIn(headers) };
      assert.ok(await isValid(session));
    }
    at(719.99);
    assert.ok(await isValid(session));
    at(720.01);
    assert.ok(!(await isValid(session)));
  });

  test('S2, rule 30: it survives a restart and the next secret; another secret or password ends it', async (context) => {
    const dbUrl = await SQLITE.freshUrl();
    const host = 'books.example.org';
    const statusOf = async (session: Session, env: Record<string, string>) => {
      const service = await startTestService(dbUrl, env);
      const { status } = await request(pageOf(service), 'GET', '/book/1', { headers: session });
      await service.stop();
      return status;
    };
    const first = await startTestService(dbUrl, { SECRET_TOKEN: SECRET });
    const session = await logIn(pageOf(first), host);
    await first.stop();
    const next = 'the next secret of sessions, long enough';
    for (const [env, status] of [
      [{ SECRET_TOKEN: SECRET }, 404],
      [{ SECRET_TOKEN: next, SECRET_TOKEN_PREVIOUS: SECRET }, 404],
      [{ SECRET_TOKEN: next }, 401],
    ] as const)
      assert.equal(await statusOf(session, env), status, JSON.stringify(env));
    const other = { SECRET_TOKEN: SECRET, AUTH_PASSWORD: 'another password' };
    const changed = await startWithoutLogin(dbUrl, other, process.stderr, TIMES as Times);
    context.after(() => changed.close());
    const page = servedAt(changed.pageUrl ?? '');
    assert.deepEqual(bare(await request(page, 'GET', '/book/1', { headers: session })), EXPIRED);
  });
});

async function start(context: TestContext, env: Record<string, string> = {}): Promise<RunningService> {
  const service = await startTestService(await SQLITE.freshUrl(), env);
  context.after(() => service.stop());
  return service;
}

async function logIn(page: Target, host = new URL(page.url).host): Promise<Session> {
  const body = { username: 'librarian', password: 'correct horse' };
  const { status, data, headers } = await request(page, 'POST', '/session', { body, headers: { host } });
  assert.equal(status, 200);
  return { cookie: cookieIn(headers), 'session-key': data.key, host };
}

const cookieIn = (headers: { get(name: string): string | null }) =>
  /^[^;]+/.exec(headers.get('set-cookie') ?? '')?.[0] ?? '';
