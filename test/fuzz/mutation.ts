// Owns: random changes of an input, as fuzzers make them: of bits and bytes, of parts that are moved, repeated or left out,
// and of words that mean something to the reader.

/** Bytes; longer inputs would show little more. */
const LONGEST = 400;

/** Bytes that are special to some reader. */
const BYTES = [0, 9, 10, 13, 32, 34, 37, 39, 42, 43, 44, 45, 46, 47, 48, 49, 57, 58, 59, 61, 91, 92, 93];
const MORE_BYTES = [95, 123, 125, 127, 128, 191, 192, 195, 224, 237, 239, 240, 244, 254, 255];
const SPECIAL = [...BYTES, ...MORE_BYTES];

const NUMBERS = ['0', '-0', '1e3', '0.5', '1000', '9007199254740991', '9007199254740992', '1e400', '5e-324'];

export type Random = () => number;

/**
 * @param random draws the next number, in [0, 1).
 * @param inputs of which one is changed, maybe by parts of others.
 * @param words of the reader.
 */
export function mutated(random: Random, inputs: readonly Buffer[], words: readonly string[]): Buffer {
  const below = (end: number) => Math.floor(random() * end);
  const one = <Value>(list: readonly Value[]) => list[below(list.length)] as Value;
  let bytes = one(inputs);
  /** Replaces a random part, which is empty half the time, by another one. */
  const replace = (part: Buffer, start = below(bytes.length + 1)) => {
    const length = random() < 0.5 ? 0 : below(Math.min(part.length + 8, bytes.length - start + 1));
    bytes = Buffer.concat([bytes.subarray(0, start), part, bytes.subarray(start + length)]);
  };
  const partOf = (other: Buffer) => {
    const start = below(other.length + 1);
    return other.subarray(start, start + 1 + below(random() < 0.5 ? 4 : other.length));
  };
  for (let times = 1 + below(random() < 0.7 ? 2 : 6); times > 0; times -= 1) {
    const at = below(bytes.length);
    switch (below(8)) {
      case 0:
        bytes = Buffer.from(bytes);
        bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8));
        break;
      case 1:
        bytes = Buffer.from(bytes);
        bytes[at] = random() < 0.5 ? one(SPECIAL) : below(256);
        break;
      case 2:
        replace(Buffer.from([random() < 0.7 ? one(SPECIAL) : below(256)]));
        break;
      case 3: {
        const length = 1 + below(random() < 0.7 ? 4 : bytes.length);
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
        break;
      }
      case 4:
        replace(partOf(bytes));
        break;
      case 5:
        replace(partOf(one(inputs)));
        break;
      case 6:
        replace(Buffer.from(one(words), 'latin1'));
        break;
      case 7:
        replace(Buffer.from(one(NUMBERS)));
        break;
    }
  }
  return bytes.subarray(0, LONGEST);
}
