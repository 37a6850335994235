// Owns: `verify`: checks a running service against the contract, over HTTP only.

import { type Verdict, verdictsOf } from '../../conformance/checking.ts';
import type { Complaint } from '../../conformance/complaint.ts';
import { REPORTS } from '../../conformance/report.ts';
import { type Account, Service } from '../../conformance/service.ts';
import { isSecretOf } from '../../conformance/tokens.ts';
import { BUILT_IN, readAccount } from '../config.ts';
import { OperatorError } from '../operator-error.ts';
import { readSecretFile } from '../secret-file.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';

export const HELP = `Usage: book-catalogue verify URL [--username NAME] [--password PASSWORD] [--secret SECRET]
                             [--store-may-be-written] [--level core|full] [--format text|tap|json]

Checks a running service, this one or another, against the contract, over HTTP only, and reports each rule: passed,
failed with the request and the answer, or not checked. Exits with code 0 if no rule failed, with 1 if one did, with 2
if an argument is invalid or the secret is another service's. URL has no path: http://127.0.0.1:8080

  --username, --password  the account; default: AUTH_USERNAME and AUTH_PASSWORD (or AUTH_PASSWORD_FILE), then the
                          built-in one
  --secret                checks the rules about tokens, too, for which it signs tokens of its own; default:
                          SECRET_TOKEN or SECRET_TOKEN_FILE
  --store-may-be-written  checks the rules that store, change and remove books, too, and removes their books again;
                          a wrong service may lose others: use a catalogue that nobody needs, while nobody else writes
  --level                 core: what every implementation has; full (the default): all that a client can see
  --format                text, tap or json; default: text on a terminal, tap in a pipe

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
export const OPERANDS = ['URL'] as const;

/** Not a failed rule: with the right secret, the same service may keep them all. */
const FOREIGN_SECRET =
  "The secret does not sign the service's tokens: set --secret or SECRET_TOKEN to the secret of the service, " +
  'or leave both out, and only the rules that need it are not checked.';

/** The service answers sooner; a list of a million books fits. */
const LIMITS = { time: 30_000, size: 256 * 1024 * 1024 };

export async function run(context: CommandContext, { options, operands }: Arguments): Promise<number> {
  const { stdout, stop } = context;
  const url = readUrl(operands[0] as string);
  const { level = 'full', format = stdout.isTTY ? 'text' : 'tap' } = options;
  if (level !== 'core' && level !== 'full')
    throw new UsageError('The level must be core or full: set --level.');
  const reportOf = REPORTS.get(format);
  if (reportOf === undefined) throw new UsageError('The format must be text, tap or json: set --format.');
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
  const service = new Service(url, readAccountOf(context, options), LIMITS);
  try {
    try {
      await service.logIn();
    } catch (error) {
      await print(`${report.begin()}${report.fail(error as Complaint)}`);
      return 1;
    }
    if (service.account.secret !== undefined && !(await isSecretOf(service)))
      throw new UsageError(FOREIGN_SECRET);
    await print(report.begin());
    const scope = {
      level,
      mayWrite: options['store-may-be-written'] === true,
      isStopped: () => isStopped,
    } as const;
    const verdicts: Verdict[] = [];
    for await (const verdict of verdictsOf(service, scope)) {
      verdicts.push(verdict);
      await print(report.add(verdict, verdicts.length));
    }
    await print(report.end(verdicts, service.left));
    if (lost !== undefined && lost.code !== 'EPIPE') {
      throw new OperatorError(`The report cannot be written: ${lost.message}.`);
    }
    return isStopped || lost !== undefined || verdicts.some(({ result }) => result === 'failed') ? 1 : 0;
  } finally {
    service.close();
  }
}

/** @throws UsageError that does not show the text: it may hold a password. */
function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    throw new UsageError('URL must be that of a service without a path, such as http://127.0.0.1:8080.');
  }
  return url;
}

function readAccountOf({ env }: CommandContext, options: Arguments['options']): Account {
  const known = readAccount(env, readSecretFile);
  const username = (options.username as string | undefined) ?? known.username;
  const password = (options.password as string | undefined) ?? known.password;
  if ((username === undefined) !== (password === undefined)) {
    const missing = username === undefined ? 'username' : 'password';
    throw new UsageError(`The ${missing} is missing: username and password are one pair.`);
  }
  return {
    username: username ?? BUILT_IN.username,
    password: password ?? BUILT_IN.password,
    secret: (options.secret as string | undefined) ?? known.secret,
  };
}
