// Owns: the peak memory of a process. Preloaded with `--require`, it writes that in KiB, when the process exits, into
// the file that PEAK_MEMORY names.

import { writeFileSync } from 'node:fs';

process.on('exit', () => {
  const { PEAK_MEMORY } = process.env;
  if (PEAK_MEMORY !== undefined) writeFileSync(PEAK_MEMORY, String(process.resourceUsage().maxRSS));
});
