// Tokens as an attacker would make them: each is put together by hand, byte for byte, never by the code of the service.
// Titles name the rules of docs/contract.md.

import assert from 'node:assert/strict';
import { constants, createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { readDbUrl } from '../../src/stores/open.ts';
import {
  type Answer,
  exchange,
  type RawAnswer,
  request,
  requestAll,
  type Target,
} from '../support/client.ts';
import {
  POSTGRES,
  type RunningService,
  SECRET,
  SQLITE,
  STORES,
  startTestService,
} from '../support/service.ts';
import { startUnableApp } from '../support/unable.ts';

const HASHES: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const now = () => Math.floor(Date.now() / 1000);
/** Far enough away that no test reaches it. */
const LATER = now() + 3600;
const CLAIMS = `{"exp":${LATER}}`;

const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url');
const hmac = (text: string, hash = 'sha256', secret: string = SECRET) =>
  createHmac(hash, secret).update(text).digest('base64url');

/** A token of any header and claims, JSON or not, signed with the right secret unless another is given. */
function make(header: string, claims: string, { hash = 'sha256', secret = SECRET } = {}): string {
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${hmac(signed, hash, secret)}`;
}

const hash = (text: string) => createHash('sha256').update(text).digest('base64url');
const makeHs256 = (claims: string) => make('{"alg":"HS256","typ":"JWT"}', claims);
const VALID = makeHs256(CLAIMS);

describe('tokens', { concurrency: true }, () => {
  let service: RunningService;

  before(async () => {
    service = await startTestService(await SQLITE.freshUrl());
  });
  after(() => service.stop());

  async function assertAccepted(token: string, name: string, target: Target = service): Promise<void> {
    const { status, message } = await request(target, 'GET', '/book/1', { token });
    assert.deepEqual({ status, message }, { status: 404, message: 'Book not found' }, name);
  }

  async function assertRefused(token: string, name: string, target: Target = service): Promise<void> {
    const { status, message, data } = await request(target, 'GET', '/book/1', { token });
    assert.deepEqual({ status, message, data }, { status: 401, message: 'Invalid token', data: null }, name);
  }

  /** Pipelines all of them on one connection. */
  async function assertAllRefused(
    tokens: readonly (readonly [name: string, token: string])[],
  ): Promise<void> {
    const answers = await requestAll(
      service,
      tokens.map(([, token]) => ['GET', '/book/1', { token }]),
    );
    for (const [position, [name]] of tokens.entries()) {
      const { status, message, data } = answers[position] as Answer;
      assert.deepEqual([status, message, data], [401, 'Invalid token', null], name);
    }
  }

  test('A5, rule 17: HS256, HS384 and HS512 with the right secret are accepted', async () => {
    for (const [algorithm, hash] of Object.entries(HASHES)) {
      await assertAccepted(make(`{"alg":"${algorithm}"}`, CLAIMS, { hash }), algorithm);
    }
    for (const header of [
      '{"typ":"at+jwt","alg":"HS256"}',
      '{"alg":"none","alg":"HS256"}',
      ' {"alg":"HS256"}\n',
    ]) {
      await assertAccepted(make(header, CLAIMS), header);
    }
  });

  test('A4, rule 18: an algorithm is neither inferred nor trusted', async () => {
    for (const [algorithm] of Object.entries(HASHES)) {
      for (const [other, hash] of Object.entries(HASHES)) {
        if (other === algorithm) continue;
        await assertRefused(make(`{"alg":"${algorithm}"}`, CLAIMS, { hash }), `${algorithm} by ${other}`);
      }
    }
    for (const algorithm of [
      '"hs256"',
      '"HS256 "',
      '"HS1"',
      '"sha256"',
      '""',
      'null',
      '256',
      '["HS256"]',
      '{}',
    ]) {
      await assertRefused(make(`{"alg":${algorithm}}`, CLAIMS), algorithm);
    }
    await assertRefused(make('{"typ":"JWT"}', CLAIMS), 'no alg');
    await assertRefused(make('{"ALG":"HS256"}', CLAIMS), 'ALG');
    await assertRefused(make('{"__proto__":{"alg":"HS256"}}', CLAIMS), 'an inherited alg');
  });

  test('A4, rule 18: unsigned tokens are refused, however "none" is spelled', async () => {
    for (const algorithm of ['none', 'None', 'NONE', 'nOnE']) {
      const signed = `${encode(`{"alg":"${algorithm}","typ":"JWT"}`)}.${encode(CLAIMS)}`;
      const signature = hmac(signed);
      for (const token of [signed, `${signed}.`, `${signed}.${signature}`, `${signed}.${encode('none')}`]) {
        await assertRefused(token, `${algorithm}: ${token}`);
      }
    }
  });

  test('A4, rule 18: tokens with a valid signature of another algorithm are refused', async () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const edwards = generateKeyPairSync('ed25519');
    const signers: Record<string, (text: Buffer) => Buffer> = {
      RS256: (text) => sign('sha256', text, rsa.privateKey),
      PS256: (text) =>
        sign('sha256', text, {
          key: rsa.privateKey,
          padding: constants.RSA_PKCS1_PSS_PADDING,
          saltLength: 32,
        }),
      ES256: (text) => sign('sha256', text, { key: elliptic.privateKey, dsaEncoding: 'ieee-p1363' }),
      EdDSA: (text) => sign(null, text, edwards.privateKey),
    };
    const textOf = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString();

    // A service whose secret is a public key must treat it as a secret like any other.
    const publicKey = textOf(rsa.publicKey);
    const confused = await startTestService(service.dbUrl, { SECRET_TOKEN: publicKey });
    try {
      for (const [algorithm, signer] of Object.entries(signers)) {
        const signed = `${encode(`{"alg":"${algorithm}"}`)}.${encode(CLAIMS)}`;
        const token = `${signed}.${signer(Buffer.from(signed)).toString('base64url')}`;
        await assertRefused(token, algorithm);
        await assertRefused(token, algorithm, confused);
      }
      await assertAccepted(make('{"alg":"HS256"}', CLAIMS, { secret: publicKey }), 'its secret', confused);
    } finally {
      await confused.stop();
    }

    for (const { publicKey } of [rsa, elliptic, edwards]) {
      for (const [algorithm, hash] of Object.entries(HASHES)) {
        const token = make(`{"alg":"${algorithm}"}`, CLAIMS, { hash, secret: textOf(publicKey) });
        await assertRefused(token, `${algorithm} keyed with a public key`);
      }
    }
  });

  test('A4, rule 18: keys inside a token are never trusted', async () => {
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
    for (const hint of hints) {
      for (const secret of [own, '', 'null', 'undefined']) {
        await assertRefused(make(`{"alg":"HS256",${hint}}`, CLAIMS, { secret }), `${hint} by "${secret}"`);
      }
      const signed = `${encode(`{"alg":"RS256",${hint}}`)}.${encode(CLAIMS)}`;
      const signature = sign('sha256', Buffer.from(signed), privateKey).toString('base64url');
      await assertRefused(`${signed}.${signature}`, `${hint} by RS256`);
    }
  });

  test('rule 17: a token with a critical header (crit) is refused, whatever its value', async () => {
    const forms = ['null', '[]', '{}', '""', 'false', '0', '["exp"]', '["b64"]', '["unknown"]', '[null]'];
    for (const form of forms) {
      const header = `{"alg":"HS256","b64":true,"exp":1,"crit":${form}}`;
      await assertRefused(make(header, CLAIMS), `crit ${form}`);
    }
  });

  test('rule 17: exp must be a number in the future', async () => {
    const second = now();
    const refused = [
      `"${LATER}"`,
      `[${LATER}]`,
      `{"value":${LATER}}`,
      'null',
      'true',
      '""',
      '1e999',
      '-1e999',
      '0',
      '-1',
      `-${LATER}`,
      String(second),
      `${second - 1}.999`,
      String(second - 3600),
    ];
    for (const exp of refused) await assertRefused(makeHs256(`{"exp":${exp}}`), `exp ${exp}`);
    for (const claims of ['{}', `{"Exp":${LATER}}`, `{"__proto__":{"exp":${LATER}}}`, `{"nbf":1,"iat":1}`]) {
      await assertRefused(makeHs256(claims), claims);
    }
    await assertRefused(makeHs256(`{"exp":${LATER},"exp":1}`), 'the last exp counts');

    for (const exp of [String(LATER), `${LATER}.5`, `${LATER}.0`, '4e9', '1e300', '9007199254740993']) {
      await assertAccepted(makeHs256(`{"exp":${exp}}`), `exp ${exp}`);
    }
    await assertAccepted(makeHs256(`{"exp":1,"exp":${LATER}}`), 'the last exp counts');
  });

  test('rule 17: nbf, if present, must be a number that is not in the future', async () => {
    const withNbf = (nbf: string) => makeHs256(`{"exp":${LATER},"nbf":${nbf}}`);
    for (const nbf of [String(LATER), `${LATER}.5`, '1e999', 'null', '"1"', '[]', '{}', 'true', 'false']) {
      await assertRefused(withNbf(nbf), `nbf ${nbf}`);
    }
    for (const nbf of ['0', '-1', '1.5', String(now()), String(now() - 3600)]) {
      await assertAccepted(withNbf(nbf), `nbf ${nbf}`);
    }
  });

  test('rule 17: iat and all other claims are ignored', async () => {
    for (const iat of [String(LATER), '0', '-1', '1.5', '1e999', 'null', '"yesterday"', '[]', '{}', 'true']) {
      await assertAccepted(makeHs256(`{"exp":${LATER},"iat":${iat}}`), `iat ${iat}`);
    }
    const others = '"sub":"x","aud":["a"],"iss":7,"jti":null,"admin":true,"__proto__":{"exp":1},"x":{"y":[]}';
    await assertAccepted(makeHs256(`{"exp":${LATER},${others}}`), 'other claims');
  });

  test('A4, rule 18: tokens with a wrong secret, a wrong form or anything around them are refused', async () => {
    const [header, claims, signature] = VALID.split('.') as [string, string, string];
    const wrongs: [string, string][] = [
      ['another secret', make('{"alg":"HS256"}', CLAIMS, { secret: 'another secret' })],
      ['the empty secret', make('{"alg":"HS256"}', CLAIMS, { secret: '' })],
      ['the secret and a line end', make('{"alg":"HS256"}', CLAIMS, { secret: `${SECRET}\n` })],
      ['a signature of other claims', `${header}.${encode(`{"exp":${LATER + 1}}`)}.${signature}`],
      [
        'a signature in hexadecimal',
        `${header}.${claims}.${Buffer.from(signature, 'base64url').toString('hex')}`,
      ],
      ['no signature', `${header}.${claims}.`],
      ['two segments', `${header}.${claims}`],
      ['one segment', header],
      ['four segments', `${VALID}.${signature}`],
      ['four segments, the last one empty', `${VALID}.`],
      ['five segments', `${VALID}.${claims}.${signature}`],
      ['an empty segment first', `.${VALID}`],
      ['only dots', '..'],
      ['ten thousand dots', '.'.repeat(10_000)],
      ['dots after it', VALID + '.'.repeat(10_000)],
      ['ten thousand letters', 'x'.repeat(10_000)],
      ['half a signature', VALID.slice(0, -20)],
      ['one character less', VALID.slice(0, -1)],
      ['one character more', `${VALID}A`],
      ['padding', `${VALID}=`],
      ['much padding', `${VALID}====`],
      ['padding in the header', `${header}=.${claims}.${signature}`],
      ['standard base64', VALID.replaceAll('-', '+').replaceAll('_', '/').replace(/.$/, '+')],
      ['a space in the header', `${header.slice(0, 5)} ${header.slice(5)}.${claims}.${signature}`],
      ['a space in the claims', `${header}.${claims.slice(0, 5)} ${claims.slice(5)}.${signature}`],
      ['a tab in the signature', `${header}.${claims}.${signature.slice(0, 5)}\t${signature.slice(5)}`],
      ['a space before a dot', `${header} .${claims}.${signature}`],
      ['a space after a dot', `${header}.${claims}. ${signature}`],
      ['rubbish in the signature', `${header}.${claims}.${signature.slice(0, 5)}!${signature.slice(5)}`],
      ['a letter beyond ASCII', `${VALID}\u00e9`],
      ['Bearer', `Bearer ${VALID}`],
      ['bearer', `bearer ${VALID}`],
      ['BEARER', `BEARER ${VALID}`],
      ['Token', `Token ${VALID}`],
      ['quotes', `"${VALID}"`],
      ['two tokens', `${VALID}, ${VALID}`],
      ['a token and more', `${VALID} x`],
      ['a basic login', `Basic ${Buffer.from('librarian:correct horse').toString('base64')}`],
      ['the secret', SECRET],
      ['a serialisation in JSON', JSON.stringify({ protected: header, payload: claims, signature })],
      ['a general one', JSON.stringify({ payload: claims, signatures: [{ protected: header, signature }] })],
      ['a token in a token', make('{"alg":"HS256","cty":"JWT"}', VALID)],
      ['a token in a token, in quotes', make('{"alg":"HS256","cty":"JWT"}', JSON.stringify(VALID))],
      ['claims sent apart', `${header}..${signature}`],
      ['claims not encoded', `${encode('{"alg":"HS256","b64":false}')}.${CLAIMS}.${signature}`],
      ['an encrypted token', `${encode('{"alg":"dir","enc":"A256GCM"}')}..${claims}.${claims}.${signature}`],
      ['the signature of nothing', `${header}.${claims}.${hmac('')}`],
      ['the claims alone signed', `${header}.${claims}.${hmac(claims)}`],
      ['text signed before it was encoded', `${header}.${claims}.${hmac(`{"alg":"HS256"}.${CLAIMS}`)}`],
      ['the hash of no secret', `${header}.${claims}.${hash(`${header}.${claims}`)}`],
    ];
    await assertAllRefused(wrongs);
    await assertAccepted(VALID, 'the token itself');
    await assertAllRefused(wrongs.map(([name, token]) => [`${name}, once the token was accepted`, token]));
  });

  test('A2, rule 18: the first of two Authorization headers counts, whatever their case', async () => {
    const other = makeHs256(`{"exp":${now() - 1}}`);
    for (const [first, second, status] of [
      [VALID, other, 404],
      [other, VALID, 401],
      ['', VALID, 401],
    ] as const) {
      const headers = `Authorization: ${first}\r\nAUTHORIZATION: ${second}\r\n`;
      const [answer] = await exchange(service, `GET /book/1 HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
      assert.equal(answer?.status, status);
    }
  });

  test('A4, rule 18: a signed token is refused if a segment is not base64url or not a JSON object', async () => {
    const header = encode('{"alg":"HS256"}');
    const claims = encode(CLAIMS);
    const texts = [
      '',
      ' ',
      'null',
      'true',
      '1',
      '"text"',
      '[]',
      `[${CLAIMS}]`,
      '{',
      `${CLAIMS}}`,
      `\ufeff${CLAIMS}`,
    ];
    const segments: [string, string][] = texts.flatMap((text): [string, string][] => [
      [encode(text), claims],
      [header, encode(text)],
    ]);
    for (const rubbish of [' ', '\t', '!', '=', '*']) {
      segments.push([`${header.slice(0, 4)}${rubbish}${header.slice(4)}`, claims]);
      segments.push([header, `${claims.slice(0, 4)}${rubbish}${claims.slice(4)}`]);
    }
    await assertAllRefused(
      segments.map(([first, second]) => {
        const signed = `${first}.${second}`;
        return [signed, `${signed}.${hmac(signed)}`];
      }),
    );
  });

  test('A4, rule 18: every HMAC case of Wycheproof’s JsonWebSignature vectors except the valid one is refused', async () => {
    // The cases of https://github.com/C2SP/wycheproof, testvectors_v1/json_web_signature_test.json, group hs256, made
    // from a token that this service accepts.
    const header = '{"alg":"HS256","kid":"kid-aes-sign"}';
    const whole = make(header, CLAIMS);
    const [head = '', claims = '', signature = ''] = whole.split('.');
    await assertAccepted(whole, 'acceptsValid');
    const other = (part: string) => `${part[0] === 'X' ? 'Y' : 'X'}${part.slice(1)}`;
    await assertAllRefused([
      ['rejectsModifiedSignature', `${head}.${claims}.${other(signature)}`],
      ['rejectsMissingSignature', `${head}.${claims}.`],
      ['rejectsMissingSignatureAndSeparator', `${head}.${claims}`],
      ['rejectsModifiedPayload', `${head}.${encode(`{"exp":${LATER + 1}}`)}.${signature}`],
      ['rejectsMissingPayload', `${head}..${signature}`],
      ['rejectsMissingPayloadAndSeparator', `${head}.${signature}`],
      ['rejectsModifiedHeader', `${encode(header.replace('kid-', 'Xid-'))}.${claims}.${signature}`],
      ['rejectsMissingHeader', `.${claims}.${signature}`],
      ['rejectsMissingHeaderAndSeparator', `${claims}.${signature}`],
      ['rejectsMissingHeaderAndSignature', `.${claims}.`],
      ['rejectsMissingHeaderSignatureAndSeparators', claims],
      ['rejectsExtraEmptyComponent', `${whole}.`],
      ['rejectsExtraComponent', `${whole}.foo`],
      [
        'rejectsNoneAlgorithmAndMissingSignature',
        `${encode('{"alg":"none","kid":"kid-aes-sign"}')}.${claims}.`,
      ],
      [
        'rejectsValidJsonSerialization',
        JSON.stringify({ payload: claims, signatures: [{ protected: head, header: {}, signature }] }),
      ],
    ]);
    const { status, message } = await request(service, 'GET', '/book/1', { token: '' });
    assert.deepEqual([status, message], [401, 'Authorization token required'], 'rejectsEmptyString');
  });

  test('A4, rule 18: a signed token is refused if its parts are not UTF-8 (RFC 8725, section 3.7)', async () => {
    const latin1 = (text: string) => Buffer.from(text, 'latin1').toString('base64url');
    const utf16 = (text: string) => Buffer.from(text, 'utf16le').toString('base64url');
    const sign = (signed: string) => `${signed}.${hmac(signed)}`;
    const header = encode('{"alg":"HS256"}');
    await assertAllRefused([
      ['a header in Latin-1', sign(`${latin1('{"alg":"HS256","kid":"é"}')}.${encode(CLAIMS)}`)],
      ['claims in Latin-1', sign(`${header}.${latin1(`{"exp":${LATER},"sub":"é"}`)}`)],
      ['a header in UTF-16', sign(`${utf16('{"alg":"HS256"}')}.${encode(CLAIMS)}`)],
      ['claims with a byte order mark', sign(`${header}.${encode(`\ufeff${CLAIMS}`)}`)],
    ]);
  });

  test('A4, rule 18: a token with any single bit changed is refused, even after the original was accepted', async () => {
    const changed: string[] = [];
    for (let position = 0; position < VALID.length; position += 1) {
      const value = ALPHABET.indexOf(VALID[position] as string);
      if (value === -1) continue; // a dot
      for (let bit = 1; bit < 64; bit *= 2) {
        changed.push(VALID.slice(0, position) + ALPHABET[value ^ bit] + VALID.slice(position + 1));
      }
    }
    assert.ok(changed.length > 500);
    const named = changed.map((token): [string, string] => [token, token]);
    await assertAllRefused(named);
    await assertAccepted(VALID, 'the token itself');
    await assertAllRefused(named);
  });

  test('rule 18: a signature has only one valid spelling, even after that was accepted', async () => {
    for (const [algorithm, hash] of Object.entries(HASHES)) {
      const token = make(`{"alg":"${algorithm}"}`, CLAIMS, { hash });
      const bytes = Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url');
      const spellings = [...ALPHABET]
        .map((last) => token.slice(0, -1) + last)
        .filter((other) => {
          const signature = Buffer.from(other.slice(other.lastIndexOf('.') + 1), 'base64url');
          return other !== token && signature.equals(bytes);
        });
      if (bytes.length % 3 === 0) assert.deepEqual(spellings, []);
      else assert.ok(spellings.length > 0, algorithm);
      for (const spelling of spellings) await assertRefused(spelling, algorithm);
      await assertAccepted(token, algorithm);
      for (const spelling of spellings) await assertRefused(spelling, algorithm);
    }
  });

  test('A6, rule 17: a token is valid from the second of its nbf to the second of its exp', async () => {
    // A slow machine may miss a period of so few seconds; the test is then repeated with a longer one.
    for (let seconds = 1; ; seconds *= 2) {
      const nbf = now() + 1 + seconds;
      const exp = nbf + seconds;
      const token = makeHs256(`{"exp":${exp},"nbf":${nbf}}`);
      const seen = { early: 0, accepted: 0, late: 0 };
      while (seen.late < 3) {
        const asked = Date.now();
        const { status } = await request(service, 'GET', '/book/1', { token });
        const answered = Date.now();
        if (status === 404) {
          assert.ok(answered >= nbf * 1000, `accepted ${nbf * 1000 - answered} ms too early`);
          assert.ok(asked < exp * 1000, `accepted ${asked - exp * 1000} ms too late`);
          seen.accepted += 1;
        } else {
          assert.equal(status, 401);
          assert.ok(asked < nbf * 1000 || answered >= exp * 1000, 'refused while it was valid');
          seen[asked < nbf * 1000 ? 'early' : 'late'] += 1;
        }
        await setTimeout(20);
      }
      // Accepted more than once, since a cached token must also expire.
      if (seen.early > 0 && seen.accepted > 1) return;
    }
  });

  test('A4: a token is accepted until it expires, however many others were seen', async () => {
    // More than a service would cache, each of them valid.
    const count = 12_000;
    const requests: string[] = [];
    for (let number = 0; number < count; number += 1) {
      const token = makeHs256(`{"exp":${LATER},"jti":${number}}`);
      requests.push(`GET /book/x HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\n\r\n`);
    }
    for (let sent = 0; sent < count; sent += 2000) {
      const answers = await exchange(service, requests.slice(sent, sent + 2000).join(''), 2000);
      assert.equal(answers.length, 2000);
      assert.ok(answers.every(({ status }: RawAnswer) => status === 404));
    }
    await assertAccepted(service.client.token, 'the first of all');
    const dead = makeHs256(`{"exp":${now() - 1}}`);
    await assertRefused(dead, 'an expired one');
  });

  test('rule 30: tokens of the previous secret are accepted until they expire, and none is signed with it', async (context) => {
    const old = 'the secret before, which is long enough';
    const rotated = await startTestService(service.dbUrl, { SECRET_TOKEN_PREVIOUS: old });
    context.after(() => rotated.stop());
    for (const [alg, hash] of Object.entries(HASHES)) {
      const header = `{"alg":"${alg}"}`;
      await assertAccepted(make(header, CLAIMS, { hash, secret: old }), `the previous one, ${alg}`, rotated);
      await assertAccepted(make(header, CLAIMS, { hash }), `the present one, ${alg}`, rotated);
    }
    const ended = `{"exp":${now() - 1}}`;
    await assertRefused(make('{"alg":"HS256"}', ended, { secret: old }), 'an expired one', rotated);
    await assertRefused(
      make('{"alg":"HS256"}', CLAIMS, { secret: 'another secret' }),
      'a third one',
      rotated,
    );
    await assertRefused(make('{"alg":"HS256"}', CLAIMS, { secret: old }), 'without the variable');
    const [head, claims, signature] = rotated.client.token.split('.');
    assert.equal(signature, hmac(`${head}.${claims}`));
  });
});

test('A4, rules 18 and 22: the cost of refusing a token grows no faster than its length', async (context) => {
  const service = await startTestService(await SQLITE.freshUrl(), { HEADER_LIMIT: '1048576' });
  context.after(() => service.stop());
  const [header = ''] = VALID.split('.');
  const kinds: [string, (length: number) => string][] = [
    ['dots', (length) => '.'.repeat(length)],
    ['letters', (length) => 'x'.repeat(length)],
    ['letters between dots', (length) => `${header}.${'x'.repeat(length)}.${'x'.repeat(43)}`],
    ['letters of signature', (length) => VALID + 'A'.repeat(length)],
    ['deep claims, signed', (length) => makeHs256('['.repeat(length / 2))],
    [
      'deep claims, whole, signed',
      (length) => makeHs256(`{"exp":${'['.repeat(length / 3)}${']'.repeat(length / 3)}}`),
    ],
  ];
  const refuse = async (name: string, token: string) => {
    const { status, message } = await request(service, 'GET', '/book/1', { token });
    assert.deepEqual([status, message], [401, 'Invalid token'], name);
  };
  for (const [name, tokenOf] of kinds) {
    /** Processor time of one request in microseconds, the minimum of several. */
    const costOf = async (length: number) => {
      let least = Number.POSITIVE_INFINITY;
      for (let time = 0; time < 5; time += 1) {
        const token = tokenOf(length - 3 * time); // each is different, since a token may be cached
        const before = process.cpuUsage();
        await refuse(name, token);
        const { user, system } = process.cpuUsage(before);
        least = Math.min(least, user + system);
      }
      return least;
    };
    const short = await costOf(4_000);
    const ratio = (await costOf(64_000)) / short;
    context.diagnostic(`${name}: 16 times the length costs ${ratio.toFixed(1)} times as much`);
    assert.ok(ratio < 64, `${name}: 16 times the length costs ${ratio} times as much`); // its square would be 256
    await refuse(name, tokenOf(700_000));
  }
  const long = makeHs256(`{"exp":${LATER},"x":"${'x'.repeat(700_000)}"}`);
  assert.equal((await request(service, 'GET', '/book/1', { token: long })).status, 404);
});

// SQLite has no lock that blocks reads.
if (STORES.includes(POSTGRES)) {
  test('A3, A4, rule 9: a refused request does not reach the store', async () => {
    const guarded = await startTestService(await POSTGRES.freshUrl());
    const holder = new pg.Client({ connectionString: guarded.dbUrl });
    await holder.connect();
    try {
      await holder.query('begin');
      await holder.query('lock table books in access exclusive mode');
      let answered = false;
      const waiting = guarded.client.request('GET', '/book/1').finally(() => {
        answered = true;
      });

      const noToken = { token: null };
      const badToken = { token: `Bearer ${VALID}` };
      const refused: [string, string, Parameters<typeof guarded.client.request>[2], number, string][] = [
        ['GET', '/book/1', noToken, 401, 'Authorization token required'],
        ['GET', '/book/1', badToken, 401, 'Invalid token'],
        ['GET', '/books', badToken, 401, 'Invalid token'],
        ['POST', '/book', { ...badToken, body: '{}' }, 401, 'Invalid token'],
        ['PUT', '/book/1', { ...badToken, body: '{}' }, 401, 'Invalid token'],
        ['DELETE', '/book/1', badToken, 401, 'Invalid token'],
        ['POST', '/token', { body: '[]' }, 400, 'Invalid request payload'],
        ['POST', '/token', { body: '{}' }, 401, 'Invalid credentials'],
        ['POST', '/book', { body: '{' }, 400, 'Invalid input'],
        ['GET', '/book/abc', {}, 404, 'Book not found'],
        ['PUT', '/book/abc', { body: '{' }, 404, 'Book not found'],
        ['DELETE', '/book/0', {}, 404, 'Book not found'],
        ['GET', '/nowhere', noToken, 404, 'Not found'],
        ['GET', '/%zz', noToken, 400, 'Bad request'],
        ['PATCH', '/books', noToken, 405, 'Method not allowed'],
      ];
      for (const [method, path, options, status, message] of refused) {
        const answer = await guarded.client.request(method, path, options);
        assert.deepEqual([answer.status, answer.message], [status, message], `${method} ${path}`);
      }
      assert.equal(answered, false, 'the lock did not block the request that needs the store');
      await holder.query('rollback');
      await waiting;
    } finally {
      await holder.end();
      await guarded.stop();
    }
  });
}

test('T5, rule 19: a token that cannot be signed is 500', async () => {
  const storeAt = await readDbUrl(await SQLITE.freshUrl());
  const store = await storeAt.open({ mustExist: false, find: false });
  const app = await startUnableApp(store, () => true);
  try {
    const { status, message, data } = await request(app, 'POST', '/token', { body: {} });
    assert.deepEqual([status, message, data], [500, 'Could not generate token', null]);
  } finally {
    await app.stop();
    await store.close();
  }
});
