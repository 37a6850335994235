// The librarians' page behind a proxy that does not only pass on: what the page says then, and that nothing typed is lost.
// It takes long, and begins first.

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { passOn, startFront } from '../support/front.ts';
import { cell, describePage, listed, logIn, row, searchField, sent, shown, WAYS } from '../support/page.ts';
import { pageOf, SQLITE, startTestService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';

const { keyboard } = WAYS;

const HTML = { 'content-type': 'text/html' };
const WANTED = { ...HTML, 'www-authenticate': 'Basic realm="Library"' };
const LOCKED = 'A proxy in front of the catalogue asks for its own password.';
const SIGNED_OUT = 'A login page in front of the catalogue answers in its place.';
const FORBIDDEN = 'A proxy in front of the catalogue forbids a request of this page.';
const ALTERED = 'A proxy in front of the catalogue changes requests or answers';

/** What the browser sends for the proxy. */
const PASSWORD = 'Basic ZnJvbnQ6ZG9vcg==';

type Answer = (outgoing: ServerResponse, forward: Forward, incoming: IncomingMessage) => void;
type Forward = (give?: (answered: IncomingMessage) => void) => void;

function page(status: number, headers: Record<string, string> = HTML): Answer {
  return (outgoing) => void outgoing.writeHead(status, headers).end('<h1>not the catalogue</h1>');
}

/** Changes the headers of an answer, or its body. */
function altered(change: (answered: IncomingMessage, outgoing: ServerResponse) => void): Answer {
  return (outgoing, forward) => forward((answered) => change(answered, outgoing));
}

function without(header: string): Answer {
  return altered((answered, outgoing) => {
    const { [header]: _, ...others } = answered.headers;
    answered.pipe(outgoing.writeHead(answered.statusCode as number, others));
  });
}

function withTag(etag: string): Answer {
  return altered((answered, outgoing) => {
    answered.pipe(outgoing.writeHead(answered.statusCode as number, { ...answered.headers, etag }));
  });
}

const PROXIES: readonly (readonly [string, Answer, string])[] = [
  ['wants a password', page(401, WANTED), LOCKED],
  ['wants a ticket', page(401, { 'www-authenticate': 'Negotiate' }), LOCKED],
  ['redirects to its login page', page(302, { location: '/sso' }), SIGNED_OUT],
  ['redirects to another host', page(302, { location: 'http://sso.example.org/' }), SIGNED_OUT],
  ['answers with its login page', page(200), SIGNED_OUT],
  ['answers 401', page(401), SIGNED_OUT],
  ['answers 401 in JSON', page(401, { 'content-type': 'application/json' }), SIGNED_OUT],
  ['is that of a hotel', page(511), SIGNED_OUT],
  ['forbids it', page(403), FORBIDDEN],
  ['has no service', page(502), 'The catalogue does not answer.'],
  ['has a service that is too slow', page(504), 'The catalogue does not answer.'],
  ['is maintained', page(503), 'The catalogue is busy or not ready yet.'],
  [
    'drops the key of the session',
    (_, forward, incoming) => {
      delete incoming.headers['session-key'];
      forward();
    },
    ALTERED,
  ],
  ['drops the links', without('link'), ALTERED],
  [
    'cuts answers',
    altered((answered, outgoing) => {
      outgoing.writeHead(200, answered.headers).write('{"status":', () => outgoing.destroy());
    }),
    'The catalogue does not answer.',
  ],
  [
    'shortens answers',
    altered(({ headers: { 'content-length': _, ...headers } }, outgoing) => {
      outgoing.writeHead(200, headers).end('{"status":');
    }),
    ALTERED,
  ],
  ['forbids it in JSON', page(403, { 'content-type': 'application/json' }), FORBIDDEN],
];

describePage('the librarians’ page behind a proxy', ({ openCatalogue, openDesk }) => {
  const trouble = (desk: Page, text: string) =>
    desk
      .getByRole('alert')
      .filter({ hasText: `${text}` })
      .filter({ hasText: 'Your changes are kept' });

  for (const [name, answer, text] of PROXIES) {
    test(`one that ${name}: the page says so, waits, and stores what was typed`, async (context) => {
      let isThere = false;
      const catalogue = await openCatalogue(context, {
        options: text === LOCKED ? { httpCredentials: { username: 'front', password: 'door' } } : {},
        front: (incoming, outgoing, forward) => {
          const isCall = incoming.url?.startsWith('/book') === true;
          if (isThere && isCall) answer(outgoing, forward, incoming);
          else forward();
        },
      });
      const desk = catalogue.page;
      await desk.clock.install();
      isThere = true;
      await searchField(desk).fill('emma');
      await waitUntil(async () => {
        await desk.clock.runFor(1000);
        return trouble(desk, text).isVisible();
      });
      await keyboard.edit(desk, 'Emma', 'year', '1816');
      await waitUntil(async () => {
        await desk.clock.runFor(1000);
        return trouble(desk, text).isVisible(); // still, or again
      });
      isThere = false;
      await waitUntil(async () => {
        await desk.clock.runFor(1000);
        return (await catalogue.client.list())[6]?.year === 1816;
      });
      await trouble(desk, text).waitFor({ state: 'hidden' });
      await row(desk, 'Emma').filter({ hasText: '1816' }).waitFor();
    });
  }

  for (const [name, answer, puts] of [
    ['changes', withTag('"AAAAAAAAAAAAAAAAAAAAAA-xyz"'), ['PUT /book/7 {"year":1816}']],
    ['removes', without('etag'), []],
  ] as const) {
    test(`one that ${name} the tags of books: the page says so, keeps the typed text, and waits for the person`, async (context) => {
      let isThere = true;
      const catalogue = await openCatalogue(context, {
        front: (incoming, outgoing, forward) => {
          if (isThere && incoming.url?.startsWith('/book/')) answer(outgoing, forward, incoming);
          else forward();
        },
      });
      const { page: desk, client } = catalogue;
      await desk.clock.install();
      await keyboard.edit(desk, 'Emma', 'year', '1816');
      await desk.getByText(`“Emma” is not stored. ${ALTERED}`).filter({ visible: true }).first().waitFor();
      await desk.clock.runFor(60_000);
      await sent(catalogue, puts);
      assert.equal(await cell(desk, 'Emma', 'year').textContent(), '1816');
      isThere = false;
      await row(desk, 'Emma').getByRole('button', { name: 'Try again' }).click();
      await waitUntil(async () => (await client.list())[6]?.year === 1816);
    });
  }

  test('one with a separate password, which the browser sends with each request: the page works', async (context) => {
    let expected = PASSWORD;
    const { page: desk, client } = await openCatalogue(context, {
      options: { httpCredentials: { username: 'front', password: 'door' } },
      front: (incoming, outgoing, forward) => {
        if (incoming.headers.authorization === expected) forward();
        else page(401, WANTED)(outgoing, forward, incoming);
      },
    });
    await keyboard.edit(desk, 'Emma', 'year', '1816');
    await waitUntil(async () => (await client.list())[6]?.year === 1816);
    await desk.reload();
    await row(desk, 'Emma').filter({ hasText: '1816' }).waitFor();
    // The proxy has another one from now on, which the person enters in another tab.
    expected = 'Basic ZnJvbnQ6Z2F0ZQ==';
    await keyboard.edit(desk, 'Emma', 'year', '1817');
    await trouble(desk, LOCKED).waitFor();
    expected = PASSWORD;
    await desk.evaluate(`dispatchEvent(new Event('focus'))`);
    await waitUntil(async () => (await client.list())[6]?.year === 1817);
    await trouble(desk, LOCKED).waitFor({ state: 'hidden' });
  });

  test('one that removes the cookie: the login says so', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(service.stop);
    const front = await startFront(context, (incoming, outgoing) => {
      delete incoming.headers.cookie;
      passOn(pageOf(service), incoming, outgoing);
    });
    const { page: desk } = await openDesk(context, front.url);
    const login = desk.getByRole('dialog', { name: 'Book catalogue' });
    await login.getByRole('textbox', { name: 'Name' }).fill('librarian');
    await login.getByLabel('Password').fill('correct horse');
    await login.getByRole('button', { name: 'Log in' }).click();
    await login.getByRole('alert').filter({ hasText: 'The browser did not send the cookie' }).waitFor();
  });

  test('a login that a proxy answers says which', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(service.stop);
    let answer: Answer | undefined;
    const front = await startFront(context, (incoming, outgoing) => {
      const forward = () => passOn(pageOf(service), incoming, outgoing);
      if (answer === undefined || incoming.url !== '/session') forward();
      else answer(outgoing, forward, incoming);
    });
    const { page: desk } = await openDesk(context, front.url);
    const login = desk.getByRole('dialog', { name: 'Book catalogue' });
    await login.getByRole('textbox', { name: 'Name' }).fill('librarian');
    await login.getByLabel('Password').fill('correct horse');
    for (const [status, headers, text] of [
      [403, HTML, FORBIDDEN],
      [302, { location: 'http://sso.example.org/' }, SIGNED_OUT],
    ] as const) {
      answer = page(status, headers);
      await login.getByRole('button', { name: 'Log in' }).click();
      await login.getByRole('alert').filter({ hasText: text }).waitFor();
    }
    answer = undefined;
    await desk.keyboard.press('Enter');
    await login.waitFor({ state: 'hidden' });
  });

  test('one that serves the page without the slash of its path: the page adds it, and keeps the search', async (context) => {
    const service = await startTestService(await SQLITE.freshUrl());
    context.after(service.stop);
    await service.client.request('POST', '/book', { body: { title: 'Emma' } });
    const front = await startFront(context, (incoming, outgoing) => {
      const [, rest] = /^\/catalogue(?:\/|(?=\?|$))(.*)/.exec(incoming.url ?? '') ?? [];
      if (rest === undefined) {
        outgoing.writeHead(404, HTML).end('another site');
        return;
      }
      incoming.url = `/${rest}`;
      passOn(pageOf(service), incoming, outgoing);
    });
    const { page: desk } = await openDesk(context, `${front.url}/catalogue?q=emma&sort=title`);
    await desk.waitForURL(`${front.url}/catalogue/?q=emma&sort=title`);
    await logIn(desk);
    await listed(desk);
    await shown(desk, ['Emma']);
  });
});
