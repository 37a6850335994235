// Owns: sending one statement to PostgreSQL, and the server's code of the error if it fails.

import pg from 'pg';
import { StoreUnavailable } from '../../books/store.ts';
import type { Query } from '../query.ts';

/** The lock could not be had in time. */
export const LOCKED = '55P03';

/** The server ended the statement, at its limit of time for example. */
export const CANCELED = '57014';

/** @param timeout milliseconds for each answer; the connection cannot be used any more after a longer time. */
export function queryOn(client: pg.ClientBase, timeout?: number): Query {
  return async <Row extends object>(text: string, values: unknown[] = []) => {
    const statement = { text, values, query_timeout: timeout }; // an option that the driver's own description lacks
    return (await client.query(statement)).rows as Row[];
  };
}

/** The server's error code; undefined if the error is not the server's. */
export function codeOf(error: unknown): string | undefined {
  const cause = error instanceof StoreUnavailable ? error.cause : error;
  return cause instanceof pg.DatabaseError ? (cause.code ?? '') : undefined;
}
