// What is a word, and which texts are equal: every case of rules F7 to F9. The service computes them for every store, so the module
// is called; the contract's rules and find/oracle.test.ts test that searches keep to them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indexText, termsOf } from '../../src/books/words.ts';

/** Titles; searches that find them, words apart from each other; searches that do not. */
const WORDS: readonly (readonly [title: string, found: readonly string[], not: readonly string[]])[] = [
  ['Cien años de soledad', ['anos', 'AÑOS', 'años', 'soledad cien', 'sole*'], ['an', 'soled', 'ciento']],
  ['Ma\u0301rquez', ['marquez', 'Márquez'], ['rquez']],
  ["L'Étranger", ['letranger', 'etranger', "l'étranger", 'l’etranger', 'L`ETRANGER'], ['tranger']],
  ['Univers’', ['univers', "univers'"], []],
  ["Sorcerer's Stone", ["sorcerer's", 'sorcerers', 'sorcerer', 'stone sorcerers'], ['sorcerer s s']],
  ["Rock 'n' Roll", ['rock', 'n', 'roll'], ['rocknroll']],
  ['The Silmarillion (J.R.R. Tolkien)', ['j.r.r.', 'jrr', 'j r r', 'J. R. R.', 'jrr tolkien'], ['rr', 'jr']],
  ['Plan B', ['b', 'plan b'], ['planb']],
  ['Catch-22', ['catch 22', 'catch-22', '22'], ['catch22', '2']],
  ['1984', ['1984', '198*'], ['84']],
  ['Straße', ['strasse', 'STRASSE', 'straße'], ['strase']],
  ['STRASSE', ['straße'], []],
  ['İstanbul Diyarbakır', ['istanbul', 'diyarbakir', 'DIYARBAKIR', 'İSTANBUL'], []],
  ['ΟΔΟΣ', ['οδός', 'οδος', 'ΟΔΌΣ'], []],
  ['Ørsted Łódź Æsop Œuvre', ['orsted', 'lodz', 'aesop', 'oeuvre', 'øRSTED', 'æsop'], ['osop']],
  ['Đorđe Þór Əli', ['dorde', 'thor', 'eli'], []],
  ['Ёлка Йод', ['елка', 'иод', 'ёлка'], []],
  ['أَلْف', ['الف'], []],
  ['كتــاب', ['كتاب'], []],
  ['שָׁלוֹם', ['שלום'], []],
  ['ﬁne ＦＩＮＥ', ['fine', 'ﬁne', 'ｆｉｎｅ'], []],
  ['Tiếng Việt', ['tieng viet'], []],
  ['हिन्दी', ['हिन्दी'], ['हनद']],
  ['百年孤独', ['百年孤独', '孤独', '独', '年孤'], ['百孤', '独孤']],
  ['ノルウェイの森', ['森', 'ノルウェイ', 'ウェイ'], ['ノイ']],
  ['はなぱば', ['ぱば'], ['はば']],
  ['채식주의자', ['채식', '주의'], ['채의']],
  ['ภาษาไทย', ['ไทย', 'ภาษา'], []],
  ['第1巻ABC', ['第', '1', '巻', 'abc', '第1巻'], ['bc']],
  ['Word™ Soft\u00adHyphen Zero\u200bWidth', ['word', 'softhyphen', 'zerowidth'], ['soft']],
  ['???', ['???', '? ? ?'], ['?', '??', '!']],
  ['🙂', ['🙂'], ['🙃']],
  [`${'x'.repeat(70)} y`, ['x'.repeat(70), 'x'.repeat(64), 'y'], ['x'.repeat(63)]],
  [`${'a '.repeat(990)}within ${'b '.repeat(10)}beyond`, ['within'], ['beyond']],
];

/** Texts that are equal to the first of each row, and ones that are not. */
const EQUAL: readonly (readonly [text: string, equal: readonly string[], not: readonly string[]])[] = [
  ['Emma', ['EMMA', ' emma ', '"Emma!"', 'É-M-M-A'.replaceAll('-', '').normalize('NFD')], ['Emma 2', 'Emm']],
  [
    'The New York Trilogy',
    ['the new-york trilogy', 'The "New" York: Trilogy'],
    ['New York Trilogy', 'thenewyorktrilogy'],
  ],
  ["O'Brien", ['o brien', 'O’BRIEN', 'O´BRIEN', 'O\u1fefBRIEN', 'O\u1ffdBRIEN', 'O｀BRIEN'], ['obrien']],
  ['Dit is ŉ boek', ["dit is 'n boek", 'dit is ʼn boek'], []],
  ['', [' ', '\u200b'], ['?']],
  ['???', ['? ? ?'], ['??', '']],
];

/** Titles in their order (rule F9). */
const SORTED =
  '|!|???|10 Days|9 Days|A Day|Day|Déchets|dechets (2)|New York|Newark|Öl|Zoo|Ωmega|война|שלום|الف|かな|百年|채식|𠮷野'.split(
    '|',
  );

/** Whether a text has every word of a search, or one that begins so. */
function isFound(text: string, search: string): boolean {
  const words = indexText(text).words.split(' ');
  return termsOf(search).every(({ word, isPrefix }) => {
    return words.some((one) => (isPrefix ? one.startsWith(word) : one === word));
  });
}

function keyOf(text: string): string {
  return indexText(text).key;
}

for (const [title, found, not] of WORDS) {
  test(`rules F7 and F8: the words of ${JSON.stringify(title.slice(0, 40))}`, () => {
    for (const search of found) assert.ok(isFound(title, search), `not found by ${search}`);
    for (const search of not) assert.ok(!isFound(title, search), `found by ${search}`);
  });
}

for (const [text, equal, not] of EQUAL) {
  test(`rule F8: the texts that are equal to ${JSON.stringify(text)}`, () => {
    for (const other of equal) assert.equal(keyOf(other), keyOf(text));
    for (const other of not) assert.notEqual(keyOf(other), keyOf(text));
  });
}

test('rule F9: titles are sorted by the code points of their keys', () => {
  const inOrder = (one: string, other: string) =>
    Buffer.compare(Buffer.from(keyOf(one)), Buffer.from(keyOf(other)));
  assert.deepEqual(SORTED.toReversed().toSorted(inOrder), SORTED);
});
