// Owns: the manual page, in roff: the help of all commands, and what belongs to none of them.

import { readFileSync } from 'node:fs';
import { ABOUT, COMMANDS, ENVIRONMENT } from '../src/cli.ts';
import { version } from '../src/version.ts';

const FILES = `  data/books.db                      the books, in the folder in which the service starts, unless DB_URL
                                     names another store

The Debian package has these:

  /etc/book-catalogue/environment    variables of the service, one line each: NAME=value
  /etc/book-catalogue/db_url         URL of the store
  /etc/book-catalogue/auth_password  password of the account librarian
  /etc/book-catalogue/secret_token   secret that signs tokens
  /var/lib/book-catalogue/data       the books, if the store is SQLite
  /var/backups/book-catalogue        backups of the SQLite store: every night after
                                     \`systemctl enable --now book-catalogue-backup.timer\`
`;

const EXIT_STATUS = `  0  done
  1  failed; one sentence on the standard error says why
  2  called with invalid arguments; one sentence on the standard error says which
`;

const DEBIAN_PACKAGE = `The Debian package runs the service as the unit book-catalogue.service. A command of root has
the settings of the service and runs as the user book-catalogue, so it works on the books of the service. \`verify\` has these
settings only for an address of this machine. The user book-catalogue cannot access every folder: pass files on the
standard input and output.

  book-catalogue import - --rejects /var/lib/book-catalogue/rejects.csv <books.csv
  book-catalogue export >books.csv
  book-catalogue backup /var/backups/book-catalogue/books.db
`;

const SEE_ALSO = `curl(1), pg_dump(1), systemctl(1)

The running service explains its calls at /docs of ADMIN_PORT, by default http://127.0.0.1:8081/docs.
`;

/** Bytes in a line of roff; some programs complain of more than 80. */
const WIDTH = 76;

export async function manualPage(): Promise<string> {
  const commands: string[] = [];
  for (const [name, [, load]] of Object.entries(COMMANDS))
    commands.push(`.SS ${name}\n${usageAndText((await load()).HELP).join('')}`);
  const [synopsis, description] = usageAndText(ABOUT);
  return [
    begin(),
    section('SYNOPSIS', synopsis),
    section('DESCRIPTION', description),
    section('COMMANDS', commands.join('')),
    section('ENVIRONMENT', roff(ENVIRONMENT)),
    section('FILES', roff(FILES)),
    section('EXIT STATUS', roff(EXIT_STATUS)),
    section('DEBIAN PACKAGE', roff(DEBIAN_PACKAGE)),
    section('SEE ALSO', roff(SEE_ALSO)),
  ].join('');
}

/** The date is that of the newest version. Lines break between words only. */
function begin(): string {
  const changes = readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8');
  const [, date = ''] = /^## \d\S* \((\d{4}-\d\d-\d\d)\)$/m.exec(changes) ?? [];
  return `.nr HY 0
.TH BOOK-CATALOGUE 1 "${date}" "book-catalogue ${version}" "User Commands"
.ad l
.SH NAME
book-catalogue \\- catalogue of books: JSON over HTTP, and a page for librarians
`;
}

/** Its first paragraph needs no macro. */
function section(title: string, paragraphs: string): string {
  return `.SH ${title}\n${paragraphs.replace(/^\.PP\n/, '')}`;
}

/** The first paragraph of a help, each call in it as a synopsis, and the others. */
function usageAndText(help: string): [string, string] {
  const [, usage = '', text = ''] = /^Usage: (.*?)\n\n(.*)$/s.exec(help) ?? [];
  const calls = usage.split(/\n +(?=book-catalogue )/).map((call) => {
    const [, program = '', args = ''] = /^(book-catalogue(?: [a-z]+)?) ?(.*)$/s.exec(call) ?? [];
    return `.SY "${escaped(program)}"\n${filled(args)}.YS\n`;
  });
  return [calls.join(''), roff(text)];
}

/** Paragraphs of a help. One that is indented is a list of names and what they mean or, without meanings, an example. */
function roff(help: string): string {
  const paragraphs = help
    .trimEnd()
    .split('\n\n')
    .map((text) => {
      if (!text.startsWith('  ')) return `.PP\n${filled(text)}`;
      const items: { name: string; meaning: string }[] = [];
      for (const line of text.split('\n')) {
        const [, name, meaning = ''] = /^ {2}(\S.*?)(?: {2,}(.*))?$/.exec(line) ?? [];
        if (name !== undefined) items.push({ name, meaning });
        else (items.at(-1) as { meaning: string }).meaning += ` ${line.trim()}`;
      }
      if (items.every(({ meaning }) => meaning === ''))
        return `.PP\n.nf\n.RS\n${items.map(({ name }) => `${escaped(name)}\n`).join('')}.RE\n.fi\n`;
      return items.map(({ name, meaning }) => `.TP\n${label(name)}\n${filled(meaning)}`).join('');
    });
  return paragraphs.join('');
}

/** The name in a list: bold, but the value of an option italic. */
function label(name: string): string {
  return escaped(name).replace(/^(.*?)(?: ([A-Z]+))?$/, (_, bold, value) => {
    return `\\fB${bold}\\fR${value === undefined ? '' : ` \\fI${value}\\fR`}`;
  });
}

/** Text of which `man` breaks the lines. */
function filled(text: string): string {
  const line = escaped(text.trim().replaceAll(/\s+/g, ' '));
  const lines = line.replaceAll(new RegExp(`(.{1,${WIDTH}})(?: |$)`, 'g'), '$1\n');
  return lines.replaceAll(/^(?=[.'])/gm, '\\&');
}

/** Text without roff's own meanings of characters, with code in bold and the names of other pages. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('~', '\\(ti')
    .replaceAll('…', '...')
    .replaceAll(/`([^`]*)`/g, '\\fB$1\\fR')
    .replaceAll(/\b(\w+)\((\d)\)/g, '\\fB$1\\fR($2)');
}
