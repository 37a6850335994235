// Owns: whether a regular expression may read some text in a number of ways that grows with its length. If not, V8, which tries one
// way after the other, takes a time in proportion to the length. By Weber and Seidl, "On the degree of ambiguity of finite
// automata": the number is bounded if no word leads from a state back to itself in two ways, nor from p to p, from p to another q,
// and from q to q.
// Does not: know groups that capture by name, look around, refer back or are lazy.

/** A place in the expression that reads a character, and those that may follow it, once for each way. */
interface Place {
  readonly reads: ReadonlySet<number>;
  readonly next: Place[];
}

/** A part of the expression: its places that may come first and last, and whether it may be empty. */
interface Part {
  readonly first: readonly Place[];
  readonly last: readonly Place[];
  readonly isEmpty: boolean;
}

/** Beside all bytes. */
const [START, END] = [256, 257];
const BYTES = Array.from({ length: 256 }, (_, byte) => byte);
const TOKENS = /\[(?:\\[\s\S]|[^\]\\])*\]|\\x[\da-f]{2}|\\[\s\S]|\((?:\?:)?|\{\d+(?:,\d*)?\}|[\s\S]/gi;

const EMPTY: Part = { first: [], last: [], isEmpty: true };

function join(one: Part, other: Part): Part {
  for (const place of one.last) place.next.push(...other.first);
  return {
    first: one.isEmpty ? [...one.first, ...other.first] : one.first,
    last: other.isEmpty ? [...one.last, ...other.last] : other.last,
    isEmpty: one.isEmpty && other.isEmpty,
  };
}

function repeated(part: Part): Part {
  return { ...join(part, { ...part, last: [] }), last: part.last, isEmpty: part.isEmpty };
}

const optional = (part: Part): Part => ({ ...part, isEmpty: true });

/** The places of an expression, from the one where it begins. */
function placesOf({ source, flags }: RegExp): Place[] {
  const tokens = source.match(TOKENS) ?? [];
  const places: Place[] = [];
  let at = 0;
  const reading = (reads: Iterable<number>): Part => {
    const place: Place = { reads: new Set(reads), next: [] };
    places.push(place);
    return { first: [place], last: [place], isEmpty: false };
  };
  const alternatives = (): Part => {
    let part = sequence();
    while (tokens[at] === '|') {
      at += 1;
      const other = sequence();
      part = {
        first: [...part.first, ...other.first],
        last: [...part.last, ...other.last],
        isEmpty: part.isEmpty || other.isEmpty,
      };
    }
    return part;
  };
  const sequence = (): Part => {
    let part = EMPTY;
    while (at < tokens.length && tokens[at] !== '|' && tokens[at] !== ')') part = join(part, quantified());
    return part;
  };
  const quantified = (): Part => {
    const start = at;
    const again = () => {
      at = start;
      return atom();
    };
    const part = again();
    const quantifier = tokens[at] ?? '';
    if (!/^[*+?]|^\{\d/.test(quantifier)) return part;
    if (quantifier.endsWith(',}')) throw new Error(`${quantifier} is not known here`);
    const end = at + 1;
    let result = quantifier === '*' || quantifier === '+' ? repeated(part) : part;
    const [least = 0, most = least] = (quantifier.match(/\d+/g) ?? (quantifier === '+' ? [1] : [0])).map(
      Number,
    );
    for (let count = 2; count <= most; count += 1)
      result = join(result, count <= least ? again() : optional(again()));
    if (least === 0) result = optional(result);
    at = end;
    return result;
  };
  const atom = (): Part => {
    const token = tokens[at] as string;
    at += 1;
    if (token === '^') return reading([START]);
    if (token === '$') return reading([END]);
    if (token.startsWith('(')) {
      const part = alternatives();
      at += 1;
      return part;
    }
    const one = new RegExp(`^${token}$`, flags);
    return reading(BYTES.filter((byte) => one.test(String.fromCharCode(byte))));
  };
  // V8 tries each place of the text for the beginning, unless the expression has one.
  const before = reading([START, ...BYTES]);
  join(source.startsWith('^') ? before : repeated(before), alternatives());
  return places;
}

/** The steps of several walks that read the same character. */
function* stepsOf(walks: readonly Place[]): Generator<Place[], void, void> {
  const [one, ...others] = walks as [Place, ...Place[]];
  if (others.length === 0) for (const place of one.next) yield [place];
  else
    for (const rest of stepsOf(others))
      for (const place of one.next) if (meet([place, ...rest])) yield [place, ...rest];
}

function meet([one, ...others]: readonly Place[]): boolean {
  return [...(one as Place).reads].some((sign) => others.every(({ reads }) => reads.has(sign)));
}

/** @returns whether walks that read the same come from some places to others. */
function leads(from: readonly Place[], to: readonly Place[], places: readonly Place[]): boolean {
  const keyOf = (walks: readonly Place[]) => walks.map((place) => places.indexOf(place)).join();
  const [goal, seen] = [keyOf(to), new Set<string>()];
  const waiting = [from];
  for (let walks = waiting.pop(); walks !== undefined; walks = waiting.pop()) {
    for (const step of stepsOf(walks)) {
      const key = keyOf(step);
      if (key === goal) return true;
      if (!seen.has(key)) waiting.push(step);
      seen.add(key);
    }
  }
  return false;
}

/** @returns whether the number of ways is without a bound. */
export function isAmbiguous(expression: RegExp): boolean {
  const places = placesOf(expression);
  const loops = places.filter((place) => leads([place], [place], places));
  return loops.some((one) => {
    const isTwice = one.next.some(
      (next, index) => one.next.indexOf(next) !== index && leads([next], [one], places),
    );
    return (
      isTwice ||
      loops.some((other) => {
        if (other === one) return false;
        if (leads([one, one, other], [one, other, other], places)) return true;
        return (
          meet([one, other]) &&
          leads([one, one], [one, other], places) &&
          leads([one, other], [one, one], places)
        );
      })
    );
  });
}
