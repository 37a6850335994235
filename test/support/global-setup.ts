// Owns: what a whole test run shares: one PostgreSQL server, unless the environment names another.

import { PostgresServer, SHARED_SERVER } from './postgres.ts';

let server: PostgresServer | undefined;

export async function globalSetup(): Promise<void> {
  if (process.env[SHARED_SERVER] !== undefined) return;
  server = await PostgresServer.start();
  process.env[SHARED_SERVER] = server.url();
}

export async function globalTeardown(): Promise<void> {
  await server?.remove();
}
