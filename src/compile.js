// Owns: translating every file once, when the project is installed, into the cache that `main.js` uses.
// A process that had to translate for itself keeps the compiler, and is the slower for it as long as it
// lives: a fifth of its reads, by measurement. Without this everything works as well.

import { globSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache(fileURLToPath(new URL('../node_modules/.cache', import.meta.url)));
const folder = new URL('.', import.meta.url);
for (const file of globSync('**/*.ts', { cwd: fileURLToPath(folder) }))
  await import(new URL(file, folder).href);
