// Owns: `forget`: removes a book together with all that the log knows of it.
// Does not: change anything without `--yes`; or reach backups, exports and other copies.

import { readBookId } from '../books/book.ts';
import { readSetting } from '../config.ts';
import { OperatorError } from '../operator-error.ts';
import { writeLine } from '../terminal/printable.ts';
import { type Arguments, type CommandContext, UsageError } from './command.ts';
import { openExisting } from './undo.ts';

export const HELP = `Usage: book-catalogue forget ID [--yes]

Removes the book with this id, and its history, permanently: nothing can take that back. The service may keep running.
Backups and exports still have it. Without --yes, it only says what it would do.

  --yes  does it
`;

export const OPTIONS = { yes: { type: 'boolean' } } as const;
export const OPERANDS = ['ID'] as const;

export async function run(
  context: CommandContext,
  { operands: [text = ''], options }: Arguments,
): Promise<number> {
  const { env, stdout } = context;
  const id = readBookId(text);
  if (id === undefined) throw new UsageError(`ID must be the id of a book, not "${text}".`);
  const store = await openExisting(context, readSetting('dbUrl', env), options.yes === true);
  try {
    const book = await store.find(id);
    const isKnown = book !== undefined || (await store.log.read((log) => log.newestChange(id))) !== undefined;
    if (!isKnown) throw new OperatorError(`There is no book ${id}, and no history of one.`);
    const named =
      book === undefined ? `Book ${id}, which was removed before,` : `Book ${id}, "${book.title}",`;
    if (options.yes === true) await store.log.write((log) => log.forget(id));
    const ending =
      options.yes === true
        ? 'is forgotten, with its history.'
        : 'would be forgotten, with its history. Nothing was changed: add --yes to do it.';
    writeLine(stdout, `${named} ${ending}`);
    return 0;
  } finally {
    await store.close();
  }
}
