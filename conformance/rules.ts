// Owns: the list of all rules, in the order of docs/contract.md.

import { BODIES } from './bodies.ts';
import { CHANGES, HISTORIES } from './changes.ts';
import { CONDITIONS } from './conditions.ts';
import { CORRECTIONS } from './correcting.ts';
import { ANY_REQUEST, CREATE, GATE, LIST, READ, REMOVE, UPDATE } from './endpoints.ts';
import { EVENTS_OF_LOG } from './events.ts';
import { FINDING } from './finding.ts';
import { IMPORTS } from './imports.ts';
import { GUESSING, LOGIN } from './login.ts';
import { KEYS_OF_REQUESTS, MANY } from './once.ts';
import { RACES } from './racing.ts';
import type { Rule } from './rule.ts';
import { SESSIONS } from './sessions.ts';
import { SORTING } from './sorting.ts';
import { SUGGESTING } from './suggesting.ts';
import { TOKENS } from './tokens.ts';
import { UNDOS } from './undo.ts';
import { WIRE } from './wire.ts';

export const RULES: readonly Rule[] = [
  ...LOGIN,
  ...GATE,
  ...TOKENS,
  ...SESSIONS,
  ...CREATE,
  ...LIST,
  ...MANY,
  ...READ,
  ...UPDATE,
  ...REMOVE,
  ...BODIES,
  ...RACES,
  ...FINDING,
  ...SUGGESTING,
  ...SORTING,
  ...CONDITIONS,
  ...KEYS_OF_REQUESTS,
  ...IMPORTS,
  ...CORRECTIONS,
  ...CHANGES,
  ...HISTORIES,
  ...UNDOS,
  ...EVENTS_OF_LOG,
  ...ANY_REQUEST,
  ...WIRE,
  // The last one: it uses up the failed logins of this machine.
  ...GUESSING,
];
