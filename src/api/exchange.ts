// Owns: one request as the gate and the handlers see it, and what they have to answer it.

import type { BlockList } from 'node:net';
import type { CheckCredentials } from '../auth/credentials.ts';
import type { LoginGuard } from '../auth/login-guard.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { Catalogue } from '../books/catalogue.ts';
import type { Config } from '../config.ts';
import type { Answer } from '../http/answer.ts';
import type { Path } from '../http/path.ts';
import type { Request } from '../http/request.ts';
import type { Imports } from '../import/imports.ts';
import type { Log } from '../log/log.ts';
import type { Times } from '../times.ts';
import type { RequestCounts } from './request-counts.ts';

export interface Exchange {
  readonly request: Pick<
    Request,
    'method' | 'headers' | 'remoteAddress' | 'bodyLength' | 'takeBody' | 'resumeBody' | 'onLeave'
  >;
  /** Identifies the request in the log. */
  readonly id: string;
  readonly path: Path;
}

export interface AppParts {
  readonly catalogue: Catalogue;
  readonly imports: Imports;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly checkCredentials: CheckCredentials;
  readonly guard: LoginGuard;
  /** Addresses and networks whose X-Forwarded-For is trusted. */
  readonly trustedProxies: BlockList;
  readonly config: Config;
  /** Port of the operations listener, whose /docs page calls from a browser. */
  readonly docsPort: number | undefined;
  readonly log: Log;
  readonly requests: RequestCounts;
  readonly times: Pick<Times, 'http' | 'api'>;
}

/** Codings of bodies. Other texts in this header have no effect: some clients put a character set there. */
const COMPRESSED = /gzip|deflate|compress|br|zstd/i;

export function isCompressed({ headers }: Exchange['request']): boolean {
  return COMPRESSED.test(headers['content-encoding'] ?? '');
}

/** What a route does: its answer is all that a client gets. */
export type Handler = (exchange: Exchange, parts: AppParts) => Promise<Answer>;

export interface Route {
  /** A literal path, or one whose second segment is `:id`, which stands for any text. */
  readonly path: string;
  readonly needsToken: boolean;
  /** Whether links in the page lead to it, with the key for links (rule X3). */
  readonly hasLinks?: boolean;
  readonly handlers: Readonly<Record<string, Handler>>;
}
