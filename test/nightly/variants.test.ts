// The whole contract on every variant of the service.
// It takes long, and begins first.

import { testTargets } from '../contract/keeping.ts';
import { VARIANTS } from '../contract/targets.ts';

testTargets(VARIANTS);
