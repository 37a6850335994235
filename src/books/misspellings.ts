// Owns: what a misspelt word of a search may stand for (rule F13): all texts one edit away, and its parts; where the words of a
// text are, and how books spell them.
// Does not: know which texts are words of books.

import { APOSTROPHES, QUOTES } from './folding.ts';
import { termsOf } from './words.ts';

// Letters of a word that is corrected.
const SHORTEST = 4;
const LONGEST = 24;

const SHORTEST_PART = 2;

/** The letters of each script that has few, as folding leaves them; and digits. */
const ALPHABETS = [
  'abcdefghijklmnopqrstuvwxyz',
  'абвгдежзиклмнопрстуфхцчшщъыьэюяђєѕіјљњћџ',
  'αβγδεζηθικλμνξοπρστυφχψω',
  'աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ',
  'აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ',
  'אבגדהוזחטיכלמנסעפצקרשת',
  'ءابتثجحخدذرزسشصضطظعغفقكلمنهويپچژگٹڈڑںےڤ',
  'ंःअआइईउऊऋएऐऑओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलळवशषसहािीुूृेैॉोौ्',
  '0123456789',
].map((letters) => [...letters]);

const PIECE = new RegExp(
  String.raw`[\p{L}\p{N}\p{M}]+(?:[${APOSTROPHES}${QUOTES}]+[\p{L}\p{N}\p{M}]+)*[*＊﹡]?`,
  'gu',
);

export interface Piece {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** The word that it is; undefined if it is several, or the beginning of one. */
  readonly word: string | undefined;
}

/** Words in place of a part of a text. */
export interface Correction extends Pick<Piece, 'start' | 'end'> {
  readonly words: readonly string[];
}

/** @returns the parts of a text between its signs, the beginning of a word with its `*`. */
export function piecesOf(text: string): Piece[] {
  return [...text.matchAll(PIECE)].map(({ 0: piece, index }) => {
    const [term, ...others] = termsOf(piece);
    const isWord = term !== undefined && others.length === 0 && !term.isPrefix;
    return {
      start: index,
      end: index + piece.length,
      text: piece,
      word: isWord ? term.word : undefined,
    };
  });
}

/** @param corrections in their order. @param spell a word. */
export function corrected(
  text: string,
  corrections: readonly Correction[],
  spell = (word: string) => word,
): string {
  return corrections.reduceRight(
    (rest, { start, end, words }) => `${rest.slice(0, start)}${words.map(spell).join(' ')}${rest.slice(end)}`,
    text,
  );
}

/** Near a shorter word, nearly every text is a word; near a longer one, there are too many to look up. */
export function isCorrectable(word: string): boolean {
  const { length } = [...word];
  return length >= SHORTEST && length <= LONGEST;
}

/**
 * All texts that differ from a word by two neighbours in the other order, or by a letter that is missing, too many or another one;
 * the likelier ones first. Of scripts without an alphabet, only the first two.
 */
export function editsOf(word: string): string[] {
  const letters = [...word];
  const alphabet = ALPHABETS.filter((own) => own.some((letter) => letters.includes(letter))).flat();
  const places = [...letters.keys(), letters.length];
  /** @param length of the letters that are replaced at each place. */
  const edits = (length: number, by: (replaced: readonly string[]) => readonly string[]) =>
    places.slice(0, places.length - length).flatMap((at) => {
      const start = letters.slice(0, at).join('');
      const end = letters.slice(at + length).join('');
      return by(letters.slice(at, at + length)).map((text) => `${start}${text}${end}`);
    });
  const texts = new Set([
    ...edits(2, ([one, other]) => [`${other}${one}`]),
    ...edits(1, () => ['']),
    ...edits(0, () => alphabet),
    ...edits(1, () => alphabet),
  ]);
  texts.delete(word);
  return [...texts];
}

/** The ways to cut a word into two or three parts, those into two first. */
export function cutsOf(word: string): string[][] {
  const letters = [...word];
  return [...cut(letters, 2), ...cut(letters, 3)];
}

function cut(letters: readonly string[], parts: number): string[][] {
  if (parts === 1) return [[letters.join('')]];
  const places = [...letters.keys()].slice(SHORTEST_PART, 1 - SHORTEST_PART).toReversed();
  return places.flatMap((at) => {
    const part = letters.slice(0, at).join('');
    return cut(letters.slice(at), parts - 1).map((others) => [part, ...others]);
  });
}

/** @returns a word as most of these texts spell it; as it is if none has it by itself. */
export function spellingOf(word: string, texts: readonly string[]): string {
  const found = new Map<string, number>();
  for (const piece of texts.flatMap(piecesOf))
    if (piece.word === word) found.set(piece.text, (found.get(piece.text) ?? 0) + 1);
  const most = Math.max(...found.values());
  return [...found].find(([, times]) => times === most)?.[0] ?? word;
}
