// The rules of the contract that take seconds, on both stores.

import { takesSeconds, testTargets } from '../contract/keeping.ts';
import { STORES_ALONE } from '../contract/targets.ts';

testTargets(STORES_ALONE, takesSeconds);
