// Owns: the command that checks a service: its options, its report, its exit code. It runs as `main.ts` in this folder and as
// `book-catalogue verify`.
// Does not: read variables and files by itself. Its caller has the account and the secret.

import { type Verdict, verdictsOf } from './checking.ts';
import type { Complaint } from './complaint.ts';
import { REPORTS } from './report.ts';
import { type Account, Service } from './service.ts';
import { isSecretOf } from './tokens.ts';

/** @param program how it is called, such as `book-catalogue verify`. */
export const helpOf = (
  program: string,
) => `Usage: ${program} URL [--username NAME] [--password PASSWORD] [--secret SECRET]
       [--store-may-be-written] [--level core|full] [--format text|json]

Checks a running service, this one or another, against the contract, over HTTP only, and reports each rule: passed,
failed with the request and the answer, or not checked. Exits with code 0 if no rule failed, with 1 if one did, with 2
if an argument is invalid or the secret is another service's. URL has no path: http://127.0.0.1:8080

  --username, --password  the account; default: AUTH_USERNAME and AUTH_PASSWORD (or AUTH_PASSWORD_FILE), then the
                          built-in one
  --secret                also checks the rules about tokens, for which it signs its own tokens; default:
                          SECRET_TOKEN or SECRET_TOKEN_FILE
  --store-may-be-written  also checks the rules that store, change and remove books, and removes their books again;
                          a wrong service may lose others: use a catalogue that nobody needs, while nobody else writes
  --level                 core: what every implementation has; full (the default): all that a client can see
  --format                text (the default) or json

Other users of the machine see the arguments of a program: set the variables instead of --password and --secret.
`;

export const OPTIONS = {
  username: { type: 'string' },
  password: { type: 'string' },
  secret: { type: 'string' },
  'store-may-be-written': { type: 'boolean' },
  level: { type: 'string' },
  format: { type: 'string' },
} as const;

/** The check cannot be made, or its report cannot be written; the message says why and shows no password. */
export class Refusal extends Error {
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What surrounds a run. */
export interface Surroundings {
  readonly stdout: NodeJS.WritableStream;
  /** Resolves when the run must end; the rule in progress then ends first. */
  readonly stop: Promise<unknown>;
  /** What the surroundings say of the account, for options that are not set. */
  readonly known: { readonly [Name in keyof Account]?: string | undefined };
}

/** The account of a service whose operator has set none. */
const BUILT_IN = { username: 'admin', password: 'password' };

/** Not a failed rule: with the right secret, the same service may keep them all. */
const FOREIGN_SECRET =
  "The secret does not sign the service's tokens: set --secret or SECRET_TOKEN to the secret of the service, " +
  'or leave both out, and only the rules that need it are not checked.';

/** The service answers sooner; a list of a million books fits. */
const LIMITS = { time: 30_000, size: 128 * 1024 * 1024 };

/**
 * @param options by the names of `OPTIONS`.
 * @returns the exit code: 0 if no rule failed, else 1.
 * @throws Refusal
 */
export async function verify(
  address: string,
  options: Readonly<Record<string, string | boolean | undefined>>,
  { stdout, stop, known }: Surroundings,
): Promise<number> {
  const url = readUrl(address);
  const { level = 'full', format = 'text' } = options;
  if (level !== 'core' && level !== 'full')
    throw new Refusal('The level must be core or full: set --level.', 2);
  const reportOf = REPORTS.get(format);
  if (reportOf === undefined) throw new Refusal('The format must be text or json: set --format.', 2);
  const report = reportOf(url.origin, level);

  let isStopped = false;
  const stopChecking = () => {
    isStopped = true;
  };
  stop.then(stopChecking);
  let lost: NodeJS.ErrnoException | undefined;
  // Without its reader the report ends, but not before the books of the rule in progress are removed.
  stdout.on('error', stopChecking);
  const print = (text: string) =>
    new Promise<void>((resolve) => {
      stdout.write(text, (error) => {
        lost ??= error ?? undefined;
        resolve();
      });
    });
  const service = new Service(url, readAccount(known, options), LIMITS);
  try {
    try {
      await service.logIn();
    } catch (error) {
      await print(`${report.begin()}${report.fail(error as Complaint)}`);
      return 1;
    }
    if (service.account.secret !== undefined && !isSecretOf(service)) throw new Refusal(FOREIGN_SECRET, 2);
    await print(report.begin());
    const scope = {
      level,
      mayWrite: options['store-may-be-written'] === true,
      isStopped: () => isStopped,
    } as const;
    const verdicts: Verdict[] = [];
    for await (const verdict of verdictsOf(service, scope)) {
      verdicts.push(verdict);
      await print(report.add(verdict));
    }
    await print(report.end(verdicts, service.left));
    if (lost !== undefined && lost.code !== 'EPIPE') {
      throw new Refusal(`The report cannot be written: ${lost.message}.`, 1);
    }
    return isStopped || lost !== undefined || verdicts.some(({ result }) => result === 'failed') ? 1 : 0;
  } finally {
    service.close();
  }
}

/** @throws Refusal that does not show the text: it may hold a password. */
function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    throw new Refusal('URL must be that of a service without a path, such as http://127.0.0.1:8080.', 2);
  }
  return url;
}

function readAccount(
  known: Surroundings['known'],
  options: Readonly<Record<string, string | boolean | undefined>>,
): Account {
  const of = (name: keyof Account) => (options[name] as string | undefined) ?? known[name];
  const [username, password] = [of('username'), of('password')];
  if ((username === undefined) !== (password === undefined)) {
    const missing = username === undefined ? 'username' : 'password';
    throw new Refusal(`The ${missing} is missing: username and password are one pair.`, 2);
  }
  return {
    ...BUILT_IN,
    ...(username !== undefined && { username, password }),
    secret: of('secret'),
  } as Account;
}
