// Owns: a commit on PostgreSQL that takes effect, and whose answer is lost.

import type { TestContext } from 'node:test';
import { countOf } from './books.ts';
import { connectTo, execute } from './postgres.ts';
import type { TcpProxy } from './proxy.ts';
import { waitUntil } from './wait.ts';

/** Halts, from now on, the commit of the transaction that stores a book with this title. */
export async function haltCommit(context: TestContext, url: string, title: string) {
  const holder = await connectTo(context, url);
  await holder.query('select pg_advisory_lock(1)');
  await execute(
    url,
    `create function halt() returns trigger language plpgsql set lock_timeout = 0 as
       $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
     create constraint trigger halt after insert on books deferrable initially deferred
       for each row when (new.title = '${title}') execute function halt()`,
  );
  return {
    /** Waits for that commit, lets it take effect, and breaks the connections of the proxy, which drops the answer. */
    async loseAnswer(proxy: TcpProxy): Promise<void> {
      const waiting = `select from pg_stat_activity
        where datname = current_database() and wait_event = 'advisory' and query = 'commit'`;
      await waitUntil(async () => (await execute(url, waiting)).length === 1);
      proxy.swallowAnswers();
      const before = await countOf(url);
      await holder.query('select pg_advisory_unlock(1)');
      await waitUntil(async () => (await countOf(url)) > before);
      proxy.reset();
    },
  };
}
