// Owns: settings that a machine, a process or a database may have, all at once: the ones that change the most.

import { execute } from './postgres.ts';
import { ENVIRONMENT, startCommand } from './service.ts';

const VARIABLES = {
  TZ: 'Pacific/Chatham',
  LC_ALL: 'tr_TR.UTF-8',
  TMPDIR: '/nonexistent',
  HOME: '/nonexistent',
};

const SETTING = 'umask 077; ulimit -n 256 -c 0; exec <&-';

// Its limits of time are longer than a busy machine stands still: they count until a new connection has others.
const OF_DATABASE = `
  statement_timeout = '2s'; idle_in_transaction_session_timeout = '2s'; idle_session_timeout = '2s'; lock_timeout = '50ms';
  client_encoding = 'LATIN1'; client_min_messages = 'debug5'; datestyle = 'German'; timezone = 'Pacific/Chatham';
  intervalstyle = 'sql_standard'; bytea_output = 'escape'; xmloption = 'document'; array_nulls = off; backslash_quote = on;
  check_function_bodies = off; quote_all_identifiers = on; row_security = off; standard_conforming_strings = off;
  default_transaction_deferrable = on; default_transaction_isolation = 'serializable'; synchronous_commit = off;
  enable_indexscan = off; extra_float_digits = -15; gin_fuzzy_search_limit = 1; plan_cache_mode = 'force_generic_plan';
  transform_null_equals = on; work_mem = '64kB'`;

/** Gives a database settings that suit other programs. */
export async function settle(dbUrl: string): Promise<void> {
  const [version] = await execute(
    dbUrl,
    "select current_setting('server_version_num')::int >= 170000 as is_17",
  );
  const settings = version?.is_17 ? `${OF_DATABASE}; transaction_timeout = '2s'` : OF_DATABASE;
  const name = new URL(dbUrl).pathname.slice(1);
  for (const setting of settings.split(';')) await execute(dbUrl, `alter database ${name} set ${setting}`);
}

/** Starts the service as a process with such settings. */
export async function startElsewhere(dbUrl: string): Promise<{ url: string; stop(): Promise<void> }> {
  return await startCommand(
    { ...ENVIRONMENT, ...VARIABLES, DB_URL: dbUrl, LOG_LEVEL: 'info' },
    { folder: '/', setting: SETTING },
  );
}
