// Owns: reading XML piece by piece, with names without their prefixes.
// Does not: read any entity but the five of XML, follow a document type, or keep a text, a tag or open tags without end.

import { SaxesParser } from 'saxes';

/** Characters without the end of a tag or of a text. */
const LONGEST = 4 * 1024 * 1024;

/** Open tags at one place. */
const DEEPEST = 100;

/** The content is not as its format says. The message ends a sentence. */
export class Damage extends Error {}

type Attributes = Readonly<Record<string, string>>;

export interface XmlHandlers {
  open(name: string, attributes: Attributes): void;
  /** A part of a text. */
  text(text: string): void;
  close(name: string): void;
}

export class XmlReader {
  readonly #parser = new SaxesParser({ xmlns: false, position: false });
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #waiting = 0;
  #depth = 0;

  constructor(handlers: XmlHandlers) {
    const text = (part: string) => handlers.text(part);
    this.#parser.on('error', ({ message }) => {
      throw new Damage(message);
    });
    this.#parser.on('opentag', ({ name, attributes }) => {
      this.#waiting = 0;
      this.#depth += 1;
      if (this.#depth > DEEPEST) throw new Damage('its tags are nested too deeply');
      handlers.open(localName(name), attributes);
    });
    this.#parser.on('text', text);
    this.#parser.on('cdata', text);
    this.#parser.on('closetag', ({ name }) => {
      this.#waiting = 0;
      this.#depth -= 1;
      handlers.close(localName(name));
    });
    this.#parser.on('doctype', () => {
      throw new Damage('it has a document type');
    });
  }

  /** @throws Damage when it is no XML; what a handler throws. */
  write(bytes: Uint8Array): void {
    this.#waiting += bytes.length;
    this.#parser.write(this.#decode(bytes));
    if (this.#waiting > LONGEST) throw new Damage('a text or a tag of it does not end');
  }

  end(): void {
    this.#parser.write(this.#decode());
    this.#parser.close();
  }

  #decode(bytes?: Uint8Array): string {
    try {
      return this.#decoder.decode(bytes, { stream: bytes !== undefined });
    } catch {
      throw new Damage('it is not UTF-8');
    }
  }
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

/** The value of an attribute, whatever its prefix. */
export function attributeOf(attributes: Attributes, name: string): string | undefined {
  return (
    attributes[name] ?? Object.entries(attributes).find(([prefixed]) => localName(prefixed) === name)?.[1]
  );
}
