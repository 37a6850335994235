// Owns: the rules about tokens, made as an attacker would make them: each is put together by hand, byte for byte. Times are
// far enough away that the clocks of both machines need not agree, or are those of the service's own clock.

import { constants, createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expectAnswer } from './complaint.ts';
import { core, full, type Rule } from './rule.ts';
import type { Service } from './service.ts';
import { BOOK_NOT_FOUND, INVALID_TOKEN, TOKEN_REQUIRED } from './words.ts';

const HASHES: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Tokens that are tried at a time. */
const TOGETHER = 16;

/** Milliseconds between two looks at whether a token has expired. */
const CLOCK_PAUSE = 200;

/** Seconds between now and the times in tokens. */
const HOUR = 3600;

const now = () => Math.floor(Date.now() / 1000);
const later = () => now() + HOUR;
const claimsNow = () => `{"exp":${later()}}`;
const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url');
const digest = (text: string) => createHash('sha256').update(text).digest('base64url');

type Named = readonly (readonly [name: string, token: string])[];

/** A token made of each text, which is its name. */
const each = (texts: readonly string[], tokenOf: (text: string) => string): Named =>
  texts.map((text) => [text, tokenOf(text)]);

/** What a signature is for. */
const signedPart = (header: string, claims: string) => `${encode(header)}.${encode(claims)}`;

/** Makes tokens with the secret of a service. */
class Signer {
  readonly #secret: string;

  constructor({ account }: Service) {
    this.#secret = account.secret as string; // the rules say that they need it
  }

  hmac(text: string, hash = 'sha256', secret = this.#secret): string {
    return createHmac(hash, secret).update(text).digest('base64url');
  }

  /** A token of any header and claims, JSON or not, signed with the right secret unless another is given. */
  make(header: string, claims: string, { hash = 'sha256', secret = this.#secret } = {}): string {
    const signed = signedPart(header, claims);
    return `${signed}.${this.hmac(signed, hash, secret)}`;
  }

  /** A token of these claims. */
  of(claims: string): string {
    return this.make('{"alg":"HS256","typ":"JWT"}', claims);
  }
}

/**
 * Whether the account's secret signs the service's token. Nothing is sent for it: another service could use a token of the
 * secret at the service that the secret belongs to.
 */
export function isSecretOf(service: Service): boolean {
  const signer = new Signer(service);
  const [, signed = '', signature] = /^(.*)\.(.*)$/s.exec(service.token) ?? [];
  return Object.values(HASHES).some((hash) => signer.hmac(signed, hash) === signature);
}

export const TOKENS: readonly Rule[] = [
  core('A4, rule 18', 'a token of another secret or kind of algorithm gets 401', async (service) => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const edwards = generateKeyPairSync('ed25519');
    const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
    const signers: Record<string, (text: Buffer) => Buffer> = {
      RS256: (text) => sign('sha256', text, rsa.privateKey),
      PS256: (text) => sign('sha256', text, { key: rsa.privateKey, ...pss }),
      ES256: (text) => sign('sha256', text, { key: elliptic.privateKey, dsaEncoding: 'ieee-p1363' }),
      EdDSA: (text) => sign(null, text, edwards.privateKey),
    };
    const claims = claimsNow();
    const signed = Object.entries(signers).map(([algorithm, signer]) => {
      const text = signedPart(`{"alg":"${algorithm}"}`, claims);
      return [algorithm, `${text}.${signer(Buffer.from(text)).toString('base64url')}`] as const;
    });
    const keys = [rsa, elliptic, edwards].map(({ publicKey }) =>
      publicKey.export({ type: 'spki', format: 'pem' }),
    );
    const keyed = ['another secret', ...keys].flatMap((secret): Named => {
      return Object.entries(HASHES).map(([algorithm, hash]) => {
        const text = signedPart(`{"alg":"${algorithm}","typ":"JWT"}`, claims);
        const mac = createHmac(hash, secret).update(text).digest('base64url');
        return [`${algorithm} of another key`, `${text}.${mac}`];
      });
    });
    const unsigned = `${signedPart('{"alg":"none","typ":"JWT"}', claims)}.`;
    await expectRefused(service, [...signed, ...keyed, ['none', unsigned]]);
  }),
  full.signing('A5, rule 17', 'HS256, HS384 and HS512 are accepted', async (service) => {
    const signer = new Signer(service);
    const claims = claimsNow();
    const headers = [
      '{"typ":"at+jwt","alg":"HS256"}',
      '{"alg":"none","alg":"HS256"}',
      ' {"alg":"HS256"}\n',
      '{"alg":"HS256","kid":"kid-aes-sign"}',
    ];
    await expectAccepted(service, [
      ...Object.entries(HASHES).map(([algorithm, hash]) => {
        return [algorithm, signer.make(`{"alg":"${algorithm}"}`, claims, { hash })] as const;
      }),
      ...each(headers, (header) => signer.make(header, claims)),
    ]);
  }),
  full.signing('A4, rule 18', 'an algorithm is neither inferred nor trusted', async (service) => {
    const signer = new Signer(service);
    const claims = claimsNow();
    const crossed = Object.keys(HASHES).flatMap((algorithm) => {
      const others = Object.entries(HASHES).filter(([other]) => other !== algorithm);
      return others.map(([other, hash]) => {
        return [`${algorithm} by ${other}`, signer.make(`{"alg":"${algorithm}"}`, claims, { hash })] as const;
      });
    });
    const algorithms = [
      ...['"hs256"', '"HS256 "', '"HS1"', '"sha256"', '""', 'null', '256', '["HS256"]', '{}'],
    ];
    const none = ['none', 'None', 'NONE', 'nOnE'].flatMap((algorithm) => {
      const signed = signedPart(`{"alg":"${algorithm}","typ":"JWT"}`, claims);
      return [signed, `${signed}.`, `${signed}.${signer.hmac(signed)}`, `${signed}.${encode('none')}`];
    });
    await expectRefused(service, [
      ...crossed,
      ...each(none, (token) => token),
      ...each(algorithms, (algorithm) => signer.make(`{"alg":${algorithm}}`, claims)),
      ['no alg', signer.make('{"typ":"JWT"}', claims)],
      ['ALG', signer.make('{"ALG":"HS256"}', claims)],
      ['an inherited alg', signer.make('{"__proto__":{"alg":"HS256"}}', claims)],
    ]);
  }),
  full.signing('A4, rule 18', 'keys inside a token are never trusted', async (service) => {
    const signer = new Signer(service);
    const claims = claimsNow();
    const own = 'a secret of the attacker, long enough to be one';
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const elsewhere = '"http://127.0.0.1:9/keys"';
    const hints = [
      `"jwk":{"kty":"oct","k":"${encode(own)}"}`,
      `"jwk":${JSON.stringify(publicKey.export({ format: 'jwk' }))}`,
      `"jku":${elsewhere}`,
      `"x5u":${elsewhere}`,
      `"x5c":["${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}"]`,
      '"kid":"../../../../dev/null"',
      `"kid":"' union select '${own}"`,
      '"kid":{"toString":1}',
    ];
    const tokens = hints.flatMap((hint): Named => {
      const keyed = [own, '', 'null', 'undefined'].map((secret) => {
        return [
          `${hint} by "${secret}"`,
          signer.make(`{"alg":"HS256",${hint}}`, claims, { secret }),
        ] as const;
      });
      const signed = signedPart(`{"alg":"RS256",${hint}}`, claims);
      const signature = sign('sha256', Buffer.from(signed), privateKey).toString('base64url');
      return [...keyed, [`${hint} by RS256`, `${signed}.${signature}`]];
    });
    await expectRefused(service, tokens);
  }),
  full.signing('rule 17', 'a critical header (crit) is refused, whatever its value', async (service) => {
    const signer = new Signer(service);
    const forms = ['null', '[]', '{}', '""', 'false', '0', '["exp"]', '["b64"]', '["unknown"]', '[null]'];
    await expectRefused(
      service,
      each(forms, (form) => {
        return signer.make(`{"alg":"HS256","b64":true,"exp":1,"crit":${form}}`, claimsNow());
      }),
    );
  }),
  core.signing('A4, rule 17', 'exp must be a number in the future', async (service, isFull) => {
    const signer = new Signer(service);
    const time = later();
    const ofExp = (exp: string) => signer.of(`{"exp":${exp}}`);
    await expectAccepted(service, each([String(time)], ofExp));
    await expectRefused(service, each([String(now() - HOUR)], ofExp));
    if (!isFull) return;
    const refused = [
      ...[`"${time}"`, `[${time}]`, `{"value":${time}}`, 'null', 'true', '""', '1e999', '-1e999', '0', '-1'],
      ...[`-${time}`, `${now() - HOUR}.999`],
    ];
    const lacking = ['{}', `{"Exp":${time}}`, `{"__proto__":{"exp":${time}}}`, `{"nbf":1,"iat":1}`];
    await expectRefused(service, [
      ...each([...refused, `${time},"exp":1`], ofExp), // the last exp counts
      ...each(lacking, (claims) => signer.of(claims)),
    ]);
    const accepted = [`${time}.5`, `${time}.0`, '4e9', '1e300', '9007199254740993'];
    await expectAccepted(service, each([...accepted, `1,"exp":${time}`], ofExp));
  }),
  full.signing('rule 17', 'nbf, if present, must be a number that is not in the future', async (service) => {
    const signer = new Signer(service);
    const time = later();
    const withNbf = (nbf: string) => signer.of(`{"exp":${time},"nbf":${nbf}}`);
    const refused = [String(time), `${time}.5`, '1e999', 'null', '"1"', '[]', '{}', 'true', 'false'];
    await expectRefused(service, each(refused, withNbf));
    await expectAccepted(service, each(['0', '-1', '1.5', String(now() - HOUR)], withNbf));
  }),
  full.signing(
    'rule 17',
    'exp and nbf count to the second, even of a token that is known',
    async (service) => {
      const signer = new Signer(service);
      // The clock of the service counts. The time in its answer has passed, by two seconds at most.
      const clock = async (token: string) => {
        const answer = await service.request('GET', service.noBook, { token });
        return { answer, time: Math.floor(Date.parse(answer.headers.get('date') ?? '') / 1000) };
      };
      const { time } = await clock(service.token);
      if (Number.isNaN(time)) return; // without Date the clock is not known
      await expectRefused(service, [
        ['exp is now', signer.of(`{"exp":${time}}`)],
        ['nbf is in half a minute', signer.of(`{"exp":${later()},"nbf":${time + 30}}`)],
      ]);
      await expectAccepted(service, [['nbf is now', signer.of(`{"exp":${later()},"nbf":${time}}`)]]);
      const exp = time + 4;
      const token = signer.of(`{"exp":${exp}}`);
      expectAnswer((await clock(token)).answer, BOOK_NOT_FOUND, 'exp is in a moment');
      for (let isOver = false; !isOver; ) {
        await pause(CLOCK_PAUSE);
        const { answer, time: now } = await clock(token);
        isOver = answer.status === INVALID_TOKEN.status;
        if (isOver || now > exp) expectAnswer(answer, INVALID_TOKEN, 'accepted before, exp is over');
      }
    },
  ),
  full.signing('rule 17', 'iat and all other claims are ignored', async (service) => {
    const signer = new Signer(service);
    const time = later();
    const forms = [String(time), '0', '-1', '1.5', '1e999', 'null', '"yesterday"', '[]', '{}', 'true'];
    const others = '"sub":"x","aud":["a"],"iss":7,"jti":null,"admin":true,"__proto__":{"exp":1},"x":{"y":[]}';
    await expectAccepted(service, [
      ...each(forms, (iat) => signer.of(`{"exp":${time},"iat":${iat}}`)),
      ['other claims', signer.of(`{"exp":${time},${others}}`)],
    ]);
  }),
  full.signing(
    'A4, rule 18',
    'tokens of a wrong form, or with anything around them, are refused',
    async (service) => {
      const signer = new Signer(service);
      const valid = signer.of(claimsNow());
      const wrongs = wrongForms(service, signer, valid);
      await expectRefused(service, wrongs);
      await expectAccepted(service, [['the token itself', valid]]);
      await expectRefused(
        service,
        wrongs.map(([name, token]) => [`${name}, once the token was accepted`, token]),
      );
    },
  ),
  full('A2, rule 18', 'the first of two Authorization headers counts', async (service) => {
    const { token } = service;
    const other = token.slice(0, -5);
    for (const [first, second, expected] of [
      [token, other, BOOK_NOT_FOUND],
      [other, token, INVALID_TOKEN],
      ['', token, TOKEN_REQUIRED],
    ] as const) {
      const headers = `Authorization: ${first}\r\nAUTHORIZATION: ${second}\r\n`;
      const [answer] = await service.exchange(
        `GET ${service.noBook} HTTP/1.1\r\nHost: ${service.host}\r\n${headers}\r\n`,
      );
      expectAnswer(answer, expected);
    }
  }),
  full.signing('A4, rule 18', 'each part must be base64url of a JSON object in UTF-8', async (service) => {
    const signer = new Signer(service);
    const header = encode('{"alg":"HS256"}');
    const text = claimsNow();
    const claims = encode(text);
    const texts = [
      '',
      ' ',
      'null',
      'true',
      '1',
      '"text"',
      '[]',
      `[${text}]`,
      '{',
      `${text}}`,
      `\ufeff${text}`,
    ];
    const segments: [string, string][] = texts.flatMap((part): [string, string][] => [
      [encode(part), claims],
      [header, encode(part)],
    ]);
    segments.push([encode(Buffer.from('{"alg":"HS256","kid":"é"}', 'latin1')), claims]);
    segments.push([encode(Buffer.from('{"alg":"HS256"}', 'utf16le')), claims]);
    segments.push([header, encode(Buffer.from(`{"exp":${later()},"sub":"é"}`, 'latin1'))]);
    for (const rubbish of [' ', '\t', '!', '=', '*']) {
      segments.push([`${header.slice(0, 4)}${rubbish}${header.slice(4)}`, claims]);
      segments.push([header, `${claims.slice(0, 4)}${rubbish}${claims.slice(4)}`]);
    }
    await expectRefused(
      service,
      segments.map(([first, second]) => {
        const signed = `${first}.${second}`;
        return [signed, `${signed}.${signer.hmac(signed)}`];
      }),
    );
  }),
  full('A4, rule 18', 'a token with any bit changed is refused, even after the original', async (service) => {
    const { token } = service;
    const changed: [string, string][] = [];
    for (let position = 0; position < token.length; position += 1) {
      const value = ALPHABET.indexOf(token[position] as string);
      if (value === -1) continue; // a dot
      for (let bit = 1; bit < 64; bit *= 2) {
        const other = token.slice(0, position) + ALPHABET[value ^ bit] + token.slice(position + 1);
        changed.push([`character ${position}`, other]);
      }
    }
    await expectAccepted(service, [['the token itself', token]]);
    await expectRefused(service, changed);
  }),
  full.signing('rule 18', 'a signature has one spelling, even after that was accepted', async (service) => {
    const signer = new Signer(service);
    for (const [algorithm, hash] of Object.entries(HASHES)) {
      const token = signer.make(`{"alg":"${algorithm}"}`, claimsNow(), { hash });
      const signatureOf = (text: string) => Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url');
      const spellings = [...ALPHABET]
        .map((last): [string, string] => [algorithm, token.slice(0, -1) + last])
        .filter(([, other]) => other !== token && signatureOf(other).equals(signatureOf(token)));
      await expectRefused(service, spellings);
      await expectAccepted(service, [[algorithm, token]]);
      await expectRefused(service, spellings);
    }
  }),
];

/** Texts in place of a token, each with a name; among them the cases of Wycheproof's json_web_signature_test.json for HS256. */
function wrongForms({ account }: Service, signer: Signer, valid: string): Named {
  const [header = '', claims = '', signature = ''] = valid.split('.');
  const text = Buffer.from(claims, 'base64url').toString();
  return [
    ['another secret', signer.make('{"alg":"HS256"}', text, { secret: 'another secret' })],
    ['the empty secret', signer.make('{"alg":"HS256"}', text, { secret: '' })],
    ['the secret and a line end', signer.make('{"alg":"HS256"}', text, { secret: `${account.secret}\n` })],
    ['a signature of other claims', `${header}.${encode(`{"exp":${later() + 1}}`)}.${signature}`],
    [
      'a signature in hexadecimal',
      `${header}.${claims}.${Buffer.from(signature, 'base64url').toString('hex')}`,
    ],
    ['no signature', `${header}.${claims}.`],
    ['two segments', `${header}.${claims}`],
    ['one segment', header],
    ['four segments', `${valid}.${signature}`],
    ['four segments, the last one empty', `${valid}.`],
    ['five segments', `${valid}.${claims}.${signature}`],
    ['an empty segment first', `.${valid}`],
    [
      'a signature with another first character',
      `${header}.${claims}.${signature.replace(/^./, (first) => (first === 'X' ? 'Y' : 'X'))}`,
    ],
    ['a signature of another header', `${encode('{"alg":"HS256","kid":"x"}')}.${claims}.${signature}`],
    ['no header', `.${claims}.${signature}`],
    ['no header and no dot', `${claims}.${signature}`],
    ['no claims and no dot', `${header}.${signature}`],
    ['claims alone', claims],
    ['claims between dots', `.${claims}.`],
    ['only dots', '..'],
    ['ten thousand dots', '.'.repeat(10_000)],
    ['dots after it', valid + '.'.repeat(10_000)],
    ['ten thousand letters', 'x'.repeat(10_000)],
    ['half a signature', valid.slice(0, -20)],
    ['one character less', valid.slice(0, -1)],
    ['one character more', `${valid}A`],
    ['padding', `${valid}=`],
    ['much padding', `${valid}====`],
    ['padding in the header', `${header}=.${claims}.${signature}`],
    ['standard base64', valid.replaceAll('-', '+').replaceAll('_', '/').replace(/.$/, '+')],
    ['a space in the header', `${header.slice(0, 5)} ${header.slice(5)}.${claims}.${signature}`],
    ['a space in the claims', `${header}.${claims.slice(0, 5)} ${claims.slice(5)}.${signature}`],
    ['a tab in the signature', `${header}.${claims}.${signature.slice(0, 5)}\t${signature.slice(5)}`],
    ['a space before a dot', `${header} .${claims}.${signature}`],
    ['a space after a dot', `${header}.${claims}. ${signature}`],
    ['rubbish in the signature', `${header}.${claims}.${signature.slice(0, 5)}!${signature.slice(5)}`],
    ['a letter beyond ASCII', `${valid}\u00e9`],
    ...each(['Bearer', 'bearer', 'BEARER', 'Token'], (scheme) => `${scheme} ${valid}`),
    ['quotes', `"${valid}"`],
    ['two tokens', `${valid}, ${valid}`],
    ['a token and more', `${valid} x`],
    ['a basic login', `Basic ${Buffer.from(`${account.username}:${account.password}`).toString('base64')}`],
    ['a serialisation in JSON', JSON.stringify({ protected: header, payload: claims, signature })],
    ['a general one', JSON.stringify({ payload: claims, signatures: [{ protected: header, signature }] })],
    ['a token in a token', signer.make('{"alg":"HS256","cty":"JWT"}', valid)],
    ['a token in a token, in quotes', signer.make('{"alg":"HS256","cty":"JWT"}', JSON.stringify(valid))],
    ['claims sent apart', `${header}..${signature}`],
    ['claims not encoded', `${encode('{"alg":"HS256","b64":false}')}.${text}.${signature}`],
    ['an encrypted token', `${encode('{"alg":"dir","enc":"A256GCM"}')}..${claims}.${claims}.${signature}`],
    ['the signature of nothing', `${header}.${claims}.${signer.hmac('')}`],
    ['the claims alone signed', `${header}.${claims}.${signer.hmac(claims)}`],
    ['text signed before it was encoded', `${header}.${claims}.${signer.hmac(`{"alg":"HS256"}.${text}`)}`],
    ['the hash of no secret', `${header}.${claims}.${digest(`${header}.${claims}`)}`],
  ];
}

const expectAccepted = (service: Service, tokens: Named) => expectEach(service, tokens, BOOK_NOT_FOUND);
const expectRefused = (service: Service, tokens: Named) => expectEach(service, tokens, INVALID_TOKEN);

async function expectEach(service: Service, tokens: Named, expected: typeof INVALID_TOKEN): Promise<void> {
  for (let start = 0; start < tokens.length; start += TOGETHER) {
    await Promise.all(
      tokens.slice(start, start + TOGETHER).map(async ([name, token]) => {
        expectAnswer(await service.request('GET', service.noBook, { token }), expected, name);
      }),
    );
  }
}
