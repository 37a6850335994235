// Owns: what is promised of the values of environment variables: a configuration, or one sentence for the operator.

import { readConfig, SETTINGS } from '../../src/config.ts';
import { urlsOfHosts } from '../../src/stores/postgres/url.ts';
import { messageFor, type Reader } from './reader.ts';

const NAMES = Object.values(SETTINGS).map(({ name }) => name);

export const settings: Reader = (input) => {
  const name = NAMES[input.choice(NAMES.length)] as string;
  const value = input.content.toString();
  if (urlsOfHosts(value).length === 0) throw new Error('no URL');
  try {
    const config = readConfig({ [name]: value });
    if (!Object.isFrozen(config)) throw new Error('not frozen');
  } catch (error) {
    const message = messageFor(error);
    if (!message.includes(name)) throw new Error(`the message does not name ${name}: ${message}`);
  }
};
