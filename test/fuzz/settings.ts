// Owns: what is promised of the values of environment variables: a configuration, or one sentence for the operator.

import { readConfig, SETTINGS } from '../../src/config.ts';
import { urlsOfHosts } from '../../src/stores/postgres/server/url.ts';
import { messageFor, type Reader } from './reader.ts';

const NAMES = Object.values(SETTINGS).map(({ name }) => name);

/** The number of a variable, as the first byte of an input. */
const first = (name: string) => String.fromCharCode(NAMES.indexOf(name));

export const settings: Reader = {
  seeds: [
    `${first('PORT')}8080`,
    `${first('CORS_ORIGINS')}https://books.example.org,http://[::1]:80`,
    `${first('TRUST_PROXY')}10.0.0.0/8, fd00::/8,127.0.0.1`,
    `${first('DB_URL')}postgres://u:p@a:1,[::1]:2/b?sslmode=require`,
    `${first('HOST')}::1`,
    `${first('LOG_LEVEL')}info`,
    `${first('BODY_LIMIT')}1024`,
    `${first('PAGE_PORT')}off`,
  ],
  words: [',', '/', '8', '65536', ':', '::', '10.0.0.1', 'https://', 'on', 'off', ' ', '@', '\0'],
  check(input) {
    const name = NAMES[input.choice(NAMES.length)] as string;
    const value = input.content.toString();
    if (urlsOfHosts(value).length === 0) throw new Error('no URL');
    try {
      const config = readConfig({ [name]: value }, () => Buffer.alloc(0));
      if (!Object.isFrozen(config)) throw new Error('not frozen');
    } catch (error) {
      const message = messageFor(error);
      if (!message.includes(name)) throw new Error(`the message does not name ${name}: ${message}`);
    }
  },
};
