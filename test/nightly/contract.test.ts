// The contract on every variant of the service, and those of its rules that take seconds on both stores.
// It takes long, and begins first.

import { takesSeconds, testTargets } from '../contract/keeping.ts';
import { STORES_ALONE, VARIANTS } from '../contract/targets.ts';

testTargets(VARIANTS);
testTargets(STORES_ALONE, takesSeconds);
