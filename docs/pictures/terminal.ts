// Owns: terminal.svg, the picture of a terminal in the README. It runs the commands that the picture shows, on a
// terminal of `script` (util-linux), and draws what they print. `node docs/pictures/terminal.ts` draws it again; the
// ports 8080 to 8082 must be free.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(new URL('../../book-catalogue', import.meta.url));
const PICTURE = new URL('./terminal.svg', import.meta.url);

const BOOKS = `title,authors,original_publication_year
The Odyssey,Homer,-720.0
Don Quijote,Miguel de Cervantes,1605.0
Emma,Jane Austen,1815.0
Middlemarch,George Eliot,MDCCCLXXI
`;

// Pixels.
const CHARACTER = 8.4;
const LINE = 20;
const MARGIN = 20;
const BAR = 36;

/** Characters of a line. */
const COLUMNS = 104;

/** Begins a sequence such as `ESC [33m`: from there on, the text has a style. */
const ESCAPE = '\u001b[';

const STYLES: Readonly<Record<string, string>> = { '1': 'bold', '2': 'dim', '31': 'bad', '33': 'warn' };

interface Part {
  readonly text: string;
  readonly style: string | undefined;
}

/** Runs a command on a terminal until `end` has been printed, or it ends by itself. */
async function print(args: readonly string[], folder: string, end?: string): Promise<string> {
  const child = spawn('script', ['-qfec', [COMMAND, ...args].join(' '), '/dev/null'], {
    cwd: folder,
    env: { PATH: process.env.PATH, TERM: 'xterm-256color', LANG: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    if (end !== undefined && output.includes(end)) child.kill('SIGTERM');
  });
  await closed;
  return output.replaceAll('\r', '').trimEnd();
}

/** Text with the styles of ANSI escape sequences. */
function parts(line: string): Part[] {
  const found: Part[] = [];
  let style: string | undefined;
  for (const [index, piece] of line.split(ESCAPE).entries()) {
    const [code = '', text] = index === 0 ? ['', piece] : (piece.match(/^(\d+)m(.*)$/)?.slice(1) ?? []);
    if (index > 0) style = STYLES[code];
    if (text) found.push({ text, style });
  }
  return found;
}

/** Breaks a line that is too long for the picture. */
function wrap(line: Part[]): Part[][] {
  const length = line.reduce((sum, { text }) => sum + text.length, 0);
  const last = line.at(-1);
  if (length <= COLUMNS || last === undefined) return [line];
  const room = COLUMNS - (length - last.text.length);
  const at = last.text.lastIndexOf(' ', room);
  if (at <= 0) return [line];
  return [
    [...line.slice(0, -1), { ...last, text: last.text.slice(0, at) }],
    ...wrap([{ ...last, text: last.text.slice(at + 1) }]),
  ];
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function draw(lines: readonly Part[][]): string {
  const width = Math.ceil(COLUMNS * CHARACTER + 2 * MARGIN);
  const height = BAR + lines.length * LINE + MARGIN;
  const rows = lines.map((line, index) => {
    const y = BAR + MARGIN / 2 + index * LINE + LINE / 2;
    const spans = line.map(({ text, style }) =>
      style === undefined ? escapeXml(text) : `<tspan class="${style}">${escapeXml(text)}</tspan>`,
    );
    return `  <text x="${MARGIN}" y="${y}">${spans.join('')}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">
  <title>A terminal: the service starts, and a file of books is imported</title>
  <style>
    text { font: 14px ui-monospace, 'SF Mono', Menlo, Consolas, monospace; fill: #e4e6e6; white-space: pre; }
    .prompt { fill: #7fd1a0; font-weight: bold; }
    .dim { fill: #98a2a8; }
    .bad { fill: #ff9a9a; }
    .warn { fill: #f0c674; }
    .bold { font-weight: bold; }
  </style>
  <rect width="${width}" height="${height}" rx="8" fill="#1c2022"/>
  <circle cx="22" cy="18" r="6" fill="#ff6159"/><circle cx="42" cy="18" r="6" fill="#ffbd2e"/><circle cx="62" cy="18" r="6" fill="#28c941"/>
${rows.join('\n')}
</svg>
`;
}

const folder = mkdtempSync(join(tmpdir(), 'book-catalogue-picture-'));
try {
  writeFileSync(join(folder, 'books.csv'), BOOKS);
  const start = await print(['serve'], folder, 'SECRET_TOKEN is not set');
  const imported = await print(['import', 'books.csv'], folder);
  const text = [
    '$ npm ci && npm start',
    ...start.split('\n').filter((line) => !/info|Session terminated/.test(line)),
    '',
    '$ ./book-catalogue import books.csv',
    ...imported.split('\n'),
  ];
  const lines = text.flatMap((line) =>
    line.startsWith('$ ')
      ? [
          [
            { text: '$', style: 'prompt' },
            { text: line.slice(1), style: undefined },
          ],
        ]
      : wrap(parts(line)),
  );
  writeFileSync(PICTURE, draw(lines));
} finally {
  rmSync(folder, { recursive: true });
}
