// Owns: JSON Schemas turned into checks of what a body says. The API's description shows the same schemas, so
// the two cannot disagree. Knows no book and no HTTP.

import { Ajv } from 'ajv';

/** A JSON Schema, or a part of one. */
export type Schema = Readonly<Record<string, unknown>>;

const ajv = new Ajv({
  // Checking our own schemas at each start would take 25 ms of it; the description's test does so instead.
  meta: false,
  validateSchema: false,
  formats: { 'well-formed-text': (text: string) => text.isWellFormed() && !text.includes('\0') },
});

/** Makes the check of a schema. It changes nothing in what it is given. */
export function checkOf<Value>(schema: Schema): (value: unknown) => value is Value {
  return ajv.compile<Value>(schema);
}
