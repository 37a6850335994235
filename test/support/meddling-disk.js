// Owns: a simulated disk that returns other data than was written to it. Preloaded with `--require` into a process that
// makes a backup, it alters a book of the copy once all pages have been copied.

import { createRequire, syncBuiltinESMExports } from 'node:module';

const sqlite = createRequire(import.meta.url)('node:sqlite');
const { backup, DatabaseSync } = sqlite;

/** @type {typeof import('node:sqlite').backup} */
const meddle = async (source, path, options) => {
  const pages = await backup(source, path, options);
  const copy = new DatabaseSync(path);
  copy.exec("update books set title = 'another' where id = 2");
  copy.close();
  return pages;
};
sqlite.backup = meddle;
syncBuiltinESMExports();
