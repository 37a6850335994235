// What a misspelt word may stand for, and how books spell it: the cases of rule F13 that need no store.
// find/suggestions.test.ts tests what the service offers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  corrected,
  cutsOf,
  editsOf,
  isCorrectable,
  piecesOf,
  spellingOf,
} from '../../src/books/misspellings.ts';
import { indexText } from '../../src/books/words.ts';

/** Words, and the misspellings that lead to them, in each script with an alphabet. */
const SCRIPTS = [
  ['tolkien', 'tolkein tolkie tolkiien olkien xtolkien tolkiem'],
  ['воина', 'воиан воин воинна оина воиня'],
  ['οδυσσεια', 'οδυσσεαι οδυσεια οδδυσσεια οδυσσειο'],
  ['աշխարհ', 'աշխահր աշխար աշխարհր աշխարգ'],
  ['ვეფხისტყაოსანი', 'ვეფხისტყაოსნაი ვეფხისტყაოსან ვეფხისტყაოსანა'],
  ['אהבה', 'אהבב אהה אההבה'],
  ['كتابها', 'كتابهم كتبها پكتابها'],
  ['किताब', 'कतिाब किताा किता किताबी'],
  ['1984', '1948 194 19984 1985'],
] as const;

test('rule F13: each edit of a letter is found, in every script with an alphabet', () => {
  for (const [word, misspellings] of SCRIPTS)
    for (const misspelt of misspellings.split(' '))
      assert.ok(editsOf(misspelt).includes(word), `${misspelt}: ${word}`);
});

test('rule F13: a random edit can be undone, and no edit is the word itself or twice there', () => {
  const letter = fc.constantFrom(...'abcxyz');
  const edit = fc.record({ word: fc.array(letter, { minLength: 4, maxLength: 24 }), at: fc.nat(), letter });
  fc.assert(
    fc.property(edit, ({ word, at, letter }) => {
      const place = at % word.length;
      const others = [
        word.with(place, letter),
        word.toSpliced(place, 0, letter),
        word.toSpliced(place, 1),
        word.toSpliced(place, 2, ...word.slice(place, place + 2).reverse()),
      ].map((letters) => letters.join(''));
      const own = word.join('');
      for (const misspelt of others.filter((other) => other !== own)) {
        const edits = editsOf(misspelt);
        assert.ok(edits.includes(own), `${misspelt}: ${own}`);
        assert.ok(!edits.includes(misspelt));
        assert.equal(new Set(edits).size, edits.length);
      }
    }),
  );
});

test('rule F13: a word has as many edits as its alphabet makes, digits only if it has one', () => {
  assert.equal(editsOf('abcdef').length, 5 + 6 + (7 * 26 - 6) + 6 * 25);
  assert.ok(!editsOf('abcdef').some((text) => /\d/.test(text)));
  assert.ok(editsOf('catch2').includes('catch22'));
  assert.deepEqual(editsOf('የኢትዮ'), ['ኢየትዮ', 'የትኢዮ', 'የኢዮት', 'ኢትዮ', 'የትዮ', 'የኢዮ', 'የኢት']); // thousands of syllables
});

test('rule F13: every letter of the alphabets is one of the index', () => {
  for (const [word] of SCRIPTS)
    for (const letter of new Set(editsOf(word).join(''))) {
      const text = `${word[0]}${letter}`;
      assert.equal(indexText(text).words, text);
    }
});

test('rule F13: words of 4 to 24 letters are corrected', () => {
  const lengths = [3, 4, 24, 25].map((length) => isCorrectable('𐐨'.repeat(length)));
  assert.deepEqual(lengths, [false, true, true, false]);
});

test('rule F13: a word is cut into two or three parts of two letters or more', () => {
  assert.deepEqual(cutsOf('abc'), []);
  assert.deepEqual(cutsOf('abcdef'), [
    ['abcd', 'ef'],
    ['abc', 'def'],
    ['ab', 'cdef'],
    ['ab', 'cd', 'ef'],
  ]);
});

test('rule F13: single words are corrected, and all else stays as it is', () => {
  const text = 'Gabriel garcía-marqez, o’brein harr* 孤独 年の狐';
  const pieces = piecesOf(text);
  assert.deepEqual(
    pieces.map(({ word }) => word),
    ['gabriel', 'garcia', 'marqez', 'obrein', undefined, '孤独', undefined],
  );
  const corrections = [
    { ...pieces[1], words: ['one', 'two'] },
    { ...pieces[3], words: ['obrien'] },
  ] as Parameters<typeof corrected>[1];
  const spelled = corrected(text, corrections, (word) => (word === 'obrien' ? "O'Brien" : word));
  assert.equal(spelled, "Gabriel one two-marqez, O'Brien harr* 孤独 年の狐");
});

test('rule F13: a word is spelled as most books spell it', () => {
  const texts = ['GARCÍA Márquez', 'García Ma\u0301rquez, García', "L'Étranger"];
  assert.equal(spellingOf('garcia', texts), 'García');
  assert.equal(spellingOf('marquez', texts), 'Márquez');
  assert.equal(spellingOf('letranger', texts), "L'Étranger");
  assert.equal(spellingOf('etranger', texts), 'etranger'); // only a part of a word there
});
