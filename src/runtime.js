// Owns: refusing a Node.js that is too old, in one sentence, before any feature is used that it lacks.

import { fileURLToPath } from 'node:url';

if (Number.parseInt(process.versions.node, 10) < 26) {
  const own = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url));
  process.stderr.write(
    `Node.js ${process.versions.node} is too old: use 26, such as ${own}, which \`npm ci\` installs with the development dependencies.\n`,
  );
  process.exit(1);
}
