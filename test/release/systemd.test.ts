// The units of deploy/ under a real systemd, installed in /opt with the commands of the documents. Needs root, and the package
// systemd. release.test.ts has the unit of the Debian package, which is made from this one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from '../support/client.ts';
import { blockOf } from '../support/documents.ts';
import { unusedPort } from '../support/ports.ts';
import { execute } from '../support/postgres.ts';
import { pathTo } from '../support/repository.ts';
import { POSTGRES } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { Root } from './root.ts';

const ETC = '/etc/book-catalogue';
const UNIT = 'book-catalogue.service';

/** Of 10, by `systemd-analyze security`. */
const MOST_EXPOSURE = 1.3;

test('rule 27: the units serve from both stores, start again when killed, back up, and stop with exit code 0', async (context) => {
  const root = await Root.withSystemd(context, [], pathTo(''), '/opt/book-catalogue');
  const [port, adminPort, pagePort] = [await unusedPort(), await unusedPort(), await unusedPort()];
  const settings = `PORT=${port}\nADMIN_PORT=${adminPort}\nPAGE_PORT=${pagePort}`;
  const isReady = async () => {
    const url = `http://127.0.0.1:${adminPort}/readyz`;
    return (await fetch(url).catch(() => undefined))?.status === 200;
  };
  const logIn = () => {
    const body = { username: 'librarian', password: root.run('cat', `${ETC}/auth_password`) };
    return Client.logIn({ url: `http://127.0.0.1:${port}`, port }, body);
  };
  const stop = () => {
    root.run('systemctl', 'stop', UNIT);
    assert.equal(root.property(UNIT, 'Result'), 'success');
    assert.equal(root.property(UNIT, 'ExecMainStatus'), '0');
  };

  root.sh(`mkdir ${ETC}; echo '${settings}' >${ETC}/environment`);
  root.sh(blockOf('docs/install.md', 'cp /opt/book-catalogue/deploy/book-catalogue.service'));
  await waitUntil(isReady);
  const units = ['', '-backup'].map((name) => `/opt/book-catalogue/deploy/book-catalogue${name}.service`);
  assert.equal(root.run('systemd-analyze', 'verify', ...units), '');
  const exposure = root.run('systemd-analyze', 'security', '--offline=true', UNIT);
  assert.ok(Number(/level for \S+: ([\d.]+)/.exec(exposure)?.[1]) <= MOST_EXPOSURE, exposure);

  const client = await logIn();
  const importFile = async (token: string, title: string) => {
    const url = `http://127.0.0.1:${port}/import`;
    const { status } = await fetch(url, {
      method: 'POST',
      headers: { authorization: token },
      body: `title\n${title}\n`,
    });
    assert.equal(status, 200);
  };
  await importFile(client.token, 'sent');
  const book = await client.create({ title: 'kept' });
  root.run('kill', '-KILL', root.property(UNIT, 'MainPID'));
  await waitUntil(async () => root.property(UNIT, 'NRestarts') === '1' && (await isReady()));
  assert.deepEqual((await client.list())[1], book); // with the earlier token

  const url = (await POSTGRES.freshUrl()).replace('127.0.0.1', 'localhost'); // a name to look up
  root.sh(`mkdir -p /srv; printf 'title\\nEmma\\n' >/srv/books.csv; echo '${url}' >${ETC}/db_url`);
  root.sh(blockOf('docs/data.md', '/srv/books.csv')); // into each store
  const titles = (await client.list()).map(({ title }) => title);
  assert.deepEqual(titles, ['sent', 'kept', 'Emma']);
  root.sh(`mv ${ETC}/db_url /srv; mkdir -p /etc/cron.d`); // with it, backups are PostgreSQL's
  root.sh(blockOf('docs/data.md', 'book-catalogue-backup.timer'));
  assert.equal(root.run('systemctl', 'is-active', 'book-catalogue-backup.timer'), 'active');
  root.run('systemctl', 'start', 'book-catalogue-backup.service');
  assert.match(root.run('ls', '/var/backups/book-catalogue'), /^books-\S+\.db$/);
  stop();

  root.sh(`mv /srv/db_url ${ETC}; echo WORKERS=2 >>${ETC}/environment
    sed -i 's/^#\\(LoadCredential=db_url\\|Environment=DB_URL_FILE\\)/\\1/' /etc/systemd/system/${UNIT}
    systemctl daemon-reload; systemctl start ${UNIT}`);
  await waitUntil(isReady);
  const { token } = await logIn();
  await importFile(token, 'in PostgreSQL');
  assert.deepEqual(await execute(url, 'select title from books order by id'), [
    { title: 'Emma' },
    { title: 'in PostgreSQL' },
  ]);
  assert.match(await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text(), /build_info\{worker="2"/);
  assert.equal((await fetch(`http://127.0.0.1:${pagePort}`)).status, 200);
  stop();
});
