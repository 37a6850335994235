// Owns: the version of the service, as package.json has it.

import manifest from '../package.json' with { type: 'json' };

export const { version } = manifest;
