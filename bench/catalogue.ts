// Owns: the books of a large catalogue, made up: few words in many titles and many words in few, few authors of many
// books, most years recent; the same in every run. And the words and authors that as many of them have as a search
// needs.

import type { BookFields } from '../src/books/book.ts';

/** The most frequent words of titles, in this order; those after them are made up. */
const WORDS =
  `the of and a in to for love my world book man your life night house with girl on war secret time death is dark story
  king last from you lost day black guide heart art red city woman blood history home sea child dead little great moon
  one new how fire road light shadow water white wild all good magic queen winter game school star family stone dream
  summer son god green river two wolf daughter end way silent island ghost at boy wind land old sky`.split(
    /\s+/,
  );

const SYLLABLES = pairsOf('bcdfghjklmnprstvwz', 'aeiou');
const RUSSIAN_SYLLABLES = pairsOf('бвгдзклмнпрстчш', 'аеиоу');
const FIRST_NAMES =
  `Suzanne Miguel Jane Gabriel Zoë Haruki Chimamanda George Agatha Terry Ursula Fyodor Toni Isabel Umberto Astrid José
  Olga Naguib Margaret Stanisław Clarice Jorge Anna Arundhati Italo Selma Octavia Émile Mary`.split(/\s+/);

/** The share of a word falls with this power of its rank. */
const POWER = 1.1;

// Words of a title; books of an author; books of a word that is made up, all three on average.
const SHORTEST_TITLE = 3;
const LONGEST_TITLE = 9;
const BOOKS_OF_AUTHOR = 6;
const BOOKS_OF_WORD = 16;

// Shares of titles.
const RUSSIAN = 0.015;
const CHINESE = 0.015;
const HARRY_POTTER = 0.0025;

/** Of Russian titles, those with `война`, and of Chinese ones, those with `孤独`. */
const KNOWN_WORD = 0.1;

/** Every so many names, one is `King`. */
const KINGS = 625;

export class Catalogue {
  readonly #books: number;
  readonly #words: number;
  readonly #authors: number;

  /** @param books how many there are. */
  constructor(books: number) {
    this.#books = books;
    this.#words = Math.max(1000, books / BOOKS_OF_WORD);
    this.#authors = books / BOOKS_OF_AUTHOR;
  }

  *books(): Generator<BookFields, void, void> {
    const random = randomNumbers();
    for (let book = 0; book < this.#books; book += 1) {
      const title = this.#title(random);
      const author = authorAt(Math.floor(this.#authors * random() ** 2));
      const isOld = random() < 0.03;
      yield { title, author, year: isOld ? 1500 + Math.floor(406 * random()) : recentYear(random()) };
    }
  }

  /** A word of about as many titles. */
  wordIn(titles: number): string {
    const words = (this.#books * (SHORTEST_TITLE + LONGEST_TITLE)) / 2;
    const share = (POWER - 1) / (1 - this.#words ** (1 - POWER));
    return wordAt(Math.round(((words * share) / titles) ** (1 / POWER)) - 1);
  }

  /** An author of about as many books. */
  authorOf(books: number): string {
    return authorAt(Math.round((this.#books / (2 * books)) ** 2 / this.#authors));
  }

  /** The author of the most books. */
  get mainAuthor(): string {
    return authorAt(0);
  }

  #title(random: () => number): string {
    const kind = random();
    if (kind < HARRY_POTTER) {
      return random() < 0.1 ? 'Harry Potter' : `Harry Potter and the ${this.#phrase(random, 2)}`;
    }
    if (kind < HARRY_POTTER + RUSSIAN) {
      const words = [0, 1].map(() => capital(madeUp(this.#rank(random), RUSSIAN_SYLLABLES)));
      return [...words, ...(random() < KNOWN_WORD ? ['война'] : [])].join(' ');
    }
    if (kind < HARRY_POTTER + RUSSIAN + CHINESE) {
      const signs = [0, 1, 2].map(() => String.fromCodePoint(0x4e00 + Math.floor(3000 * random() ** 2)));
      return `${random() < KNOWN_WORD ? '孤独' : ''}${signs.join('')}`;
    }
    return this.#phrase(random, SHORTEST_TITLE + Math.floor((LONGEST_TITLE - SHORTEST_TITLE + 1) * random()));
  }

  #phrase(random: () => number, length: number): string {
    return Array.from({ length }, () => capital(wordAt(this.#rank(random)))).join(' ');
  }

  /** The rank of any word, from 0, by its share. */
  #rank(random: () => number): number {
    const rest = 1 - random() * (1 - this.#words ** (1 - POWER));
    return Math.floor(rest ** (1 / (1 - POWER))) - 1;
  }
}

/** Numbers from 0 to 1, always the same (Lehmer's generator). */
function randomNumbers(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 0x7fffffff;
    return state / 0x7fffffff;
  };
}

/** The last of 120 years has the most books. */
function recentYear(random: number): number {
  return 2026 - Math.floor(120 * random ** 1.5);
}

function wordAt(rank: number): string {
  return WORDS[rank] ?? madeUp(rank, SYLLABLES);
}

function authorAt(rank: number): string {
  const first = FIRST_NAMES[rank % FIRST_NAMES.length] as string;
  const last = `${madeUp(Math.floor(rank / FIRST_NAMES.length), SYLLABLES)}n`; // no word of a title ends so
  return `${first} ${rank % KINGS === KINGS - 1 ? 'King' : capital(last)}`;
}

/** A number as syllables, its last digits first, so that neighbours begin differently. */
function madeUp(number: number, syllables: readonly string[]): string {
  const parts: string[] = [];
  for (let rest = number; rest > 0 || parts.length < 2; rest = Math.floor(rest / syllables.length)) {
    parts.push(syllables[rest % syllables.length] as string);
  }
  return parts.join('');
}

function pairsOf(consonants: string, vowels: string): string[] {
  return [...consonants].flatMap((consonant) => [...vowels].map((vowel) => consonant + vowel));
}

function capital(word: string): string {
  return `${(word[0] as string).toUpperCase()}${word.slice(1)}`;
}
