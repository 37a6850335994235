// Owns: compiling every file once, when the project is installed, into the cache that `main.js` uses.
// A process that had to compile by itself keeps the compiler in memory and stays slower: it serves a fifth fewer reads
// (measured). Without the cache everything still works.

import './runtime.js';
import * as fs from 'node:fs';
import * as module from 'node:module';
import { fileURLToPath } from 'node:url';

module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache', import.meta.url)));
const folder = new URL('.', import.meta.url);
for (const file of fs.globSync('**/*.ts', { cwd: fileURLToPath(folder) }))
  await import(new URL(file, folder).href);
