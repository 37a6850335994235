// Owns: how the schemas of the OpenAPI document are written.

/** A JSON Schema, or a part of one. */
export type Schema = Readonly<Record<string, unknown>>;

export function schemaRef(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** An object of exactly these fields. */
export function exactly(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties };
}
