// Owns: the list of everything in the documents that is generated from the code. As a program (`npm run docs`) it writes
// all of it; a test compares the files with it.

import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeFigures, markdown } from '../bench/document.ts';
import { ROWS } from '../src/config.ts';
import { DESCRIPTIONS } from '../src/metrics/descriptions.ts';
import type { Description } from '../src/metrics/prometheus.ts';
import { bash, completionOf, fish, zsh } from './completion.ts';
import { limitsTable } from './limits.ts';
import { manualPage } from './manual-page.ts';
import { mapOf } from './map.ts';
import { describeApi } from './openapi/document.ts';
import { IN_QUERY } from './openapi/parameters.ts';
import { messagesTable } from './openapi/responses.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

/** Files that are generated as a whole. */
const FILES: Readonly<Record<string, () => string | Promise<string>>> = {
  'docs/openapi/openapi.json': describeApi,
  'deploy/book-catalogue.1': manualPage,
  'deploy/completion/book-catalogue.bash': () => completionOf(bash),
  'deploy/completion/_book-catalogue': () => completionOf(zsh),
  'deploy/completion/book-catalogue.fish': () => completionOf(fish),
};

/**
 * Parts of documents. A document has the part `name` between the lines `<!-- generated: name -->` and
 * `<!-- end of name -->`. The function gets the path of the document.
 */
const PARTS: Readonly<Record<string, (document: string) => string>> = {
  figures: describeFigures,
  limits: () => markdown({ head: ['Limit', 'Value', 'Beyond it'], rows: limitsTable() }),
  map: (document) => mapOf(dirname(document)),
  messages: () => markdown({ head: ['Status', 'Message', 'Rules'], rows: messagesTable() }),
  metrics: metricsTable,
  parameters: parametersTable,
  variables: variablesTable,
};

const PART = /^<!-- generated: (.+?) -->\n.*?^<!-- end of \1 -->$/gms;

/** @returns the text that each generated file, and each document with generated parts, must have, by its path. */
export async function generatedTexts(): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const [path, describe] of Object.entries(FILES)) texts.set(path, await describe());
  for (const path of globSync(
    ['*.md', '{bench,client,conformance,deploy,docs,endurance,page,src,test}/**/*.md'],
    {
      cwd: PROJECT,
    },
  )) {
    const text = readFileSync(`${PROJECT}/${path}`, 'utf8');
    const generated = text.replace(PART, (_, name: string) => {
      const part = PARTS[name];
      if (part === undefined) throw new Error(`${path}: nothing generates "${name}".`);
      return `<!-- generated: ${name} -->\n\n${part(path)}\n\n<!-- end of ${name} -->`;
    });
    if (/^<!-- generated: /m.test(generated)) texts.set(path, generated);
  }
  return texts;
}

function variablesTable(): string {
  const rows = ROWS.map(({ name, help, absent }) => [`\`${name}\``, help, absent]);
  return markdown({ head: ['Variable', 'Meaning', 'Default'], rows });
}

function metricsTable(): string {
  const rows = Object.entries<Description>(DESCRIPTIONS).map(([name, { labels = {}, help }]) => {
    const described = Object.entries(labels).map(([label, values]) =>
      [`\`${label}\``, values.map((value) => `\`${value}\``).join(', ')].filter(Boolean).join(': '),
    );
    return [`\`${name}\``, described.join('; '), help];
  });
  return markdown({ head: ['Metric', 'Labels', 'Meaning'], rows });
}

function parametersTable(): string {
  const rows = Object.entries(IN_QUERY).map(([name, { description, schema }]) => {
    const [example] = schema.examples as readonly unknown[];
    return [`\`${name}\``, description, name === 'cursor' ? '' : `\`${name}=${example}\``];
  });
  return markdown({ head: ['Parameter', 'Meaning', 'Example'], rows });
}

if (import.meta.main) {
  for (const [path, text] of await generatedTexts()) writeFileSync(`${PROJECT}/${path}`, text);
}
