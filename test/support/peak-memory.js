// Owns: how much memory a process took at most. Preloaded by `--import`, it writes that at the end, in KiB, into the
// file that PEAK_MEMORY names.

import { writeFileSync } from 'node:fs';

process.on('exit', () => {
  const { PEAK_MEMORY } = process.env;
  if (PEAK_MEMORY !== undefined) writeFileSync(PEAK_MEMORY, String(process.resourceUsage().maxRSS));
});
