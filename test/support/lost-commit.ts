// Owns: a commit on PostgreSQL that takes effect, and whose answer is lost.

import type { TestContext } from 'node:test';
import { connectTo } from './postgres.ts';
import type { TcpProxy } from './proxy.ts';
import { waitUntil } from './wait.ts';

/** Halts, from now on, the commit of the transaction that stores a book with this title. */
export async function haltCommit(context: TestContext, url: string, title: string) {
  const holder = await connectTo(context, url);
  await holder.query(
    `select pg_advisory_lock(1);
     create function halt() returns trigger language plpgsql set lock_timeout = 0 as
       $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
     create constraint trigger halt after insert on books deferrable initially deferred
       for each row when (new.title = '${title}') execute function halt()`,
  );
  const has = async (rows: string) => (await holder.query(`select ${rows}`)).rowCount !== 0;
  return {
    /**
     * Waits for that commit, lets it take effect, and breaks the connections of the proxy, which drops the answer.
     * @param ended of the command that commits.
     */
    async loseAnswer(proxy: TcpProxy, ended: Promise<unknown>): Promise<void> {
      const waiting = `from pg_stat_activity
        where datname = current_database() and wait_event = 'advisory' and query = 'commit'`;
      await waitUntil(() => has(waiting), ended);
      proxy.swallowAnswers();
      await holder.query('select pg_advisory_unlock(1)');
      await waitUntil(() => has(`from books where title = '${title}'`));
      proxy.reset();
    },
  };
}
