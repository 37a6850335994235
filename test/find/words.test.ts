// What is a word, and which texts are equal: every case of rules F7 to F9. The service computes them for every store, so the module
// is called; the contract's rules and find/oracle.test.ts test that searches keep to them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filedAuthor, withoutArticle } from '../../src/books/filing.ts';
import { indexText, termsOf } from '../../src/books/words.ts';

/** Titles; searches that find them, words apart from each other; searches that do not. */
const WORDS: readonly (readonly [title: string, found: readonly string[], not: readonly string[]])[] = [
  ['Cien años de soledad', ['anos', 'AÑOS', 'años', 'soledad cien', 'sole*'], ['an', 'soled', 'ciento']],
  ['Ma\u0301rquez', ['marquez', 'Márquez'], ['rquez']],
  ["L'Étranger", ['letranger', 'etranger', "l'étranger", 'l’etranger', 'L`ETRANGER'], ['tranger']],
  ['Univers’', ['univers', "univers'"], []],
  ["Sorcerer's Stone", ["sorcerer's", 'sorcerers', 'sorcerer', 'stone sorcerers'], ['sorcerer s s']],
  ['Die "Un"sichtbaren', ['unsichtbaren', 'un', 'sichtbaren', 'die "un"'], ['dieun']],
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
  ['ハリー・ポッター', ['ハリーポッター', 'ポッター ハリー', 'ポッター・ハリー', 'リーポッ'], ['ターハリー']],
  ['はなぱば', ['ぱば'], ['はば']],
  ['채식주의자', ['채식', '주의'], ['채의']],
  ['ภาษาไทย', ['ไทย', 'ภาษา'], []],
  ['第1巻ABC', ['第', '1', '巻', 'abc', '第1巻'], ['bc']],
  ['Word™ Soft\u00adHyphen Zero\u200bWidth \u1160x', ['word', 'softhyphen', 'zerowidth', 'x'], ['soft']],
  ['???', ['???', '? ? ?'], ['?', '??', '!']],
  ['🙂', ['🙂'], ['🙃']],
  ['™', ['™', '™ '], ['tm', '℠', '®', '¨']],
  ['Emma', [], ['™', '℠', '?™', '¨', '¯', '\u0301', 'ˇ', 'ـ']],
  ['?', ['?'], ['?™']],
  ['¸ ¯', ['¸¯'], ['¸', '¯']],
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
  ['Obʺem', ["ob'em", 'ob em', 'ob"em'], ['obem']],
  ['کتاب\u200cها', ['کتاب ها', 'كتاب ها'], ['کتابها']],
  ['الف ٢', ['الف 2', 'ألف ۲'], ['الف 3']],
  ['Dit is ŉ boek', ["dit is 'n boek", 'dit is ʼn boek'], []],
  ['', [' ', '\u200b'], ['?']],
  ['???', ['? ? ?'], ['??', '']],
  ['ハリー・ポッター', ['ハリー ポッター', 'ハリー＝ポッター'], ['ハリーポッター']],
];

/** Spellings of which each finds each; code points are spelled out where a reader would not see them. */
const SPELLINGS: readonly (readonly string[])[] = [
  // an alif, an ayn, a soft and a hard sign, an ʻokina, an apostrophe
  ['Qurʾān', 'quran', "qur'an", 'Qur\u02bcān', 'Qur’an', 'qur`an', 'Qurˀan', 'Qurʔān', 'Qur\ua723an'],
  ['ʿAbd', 'abd', "'Abd", 'ʻAbd', '‘Abd', 'ʕAbd', 'ʽAbd', '\ua725abd'],
  ['Gogolʹ', 'gogol', "gogol'", 'Gogol′', 'Gogol’', 'Gogol´'],
  ['Obʺem', 'obem', "ob'em", 'ob"em', 'ob″em', 'ob”em', "ob''em", 'obˮem'],
  ['T͡sarʹ', 'tsar', 't\ufe20s\ufe21ar'],
  ['Oʻzbek', "o'zbek", 'ozbek', 'Oʼzbek'],
  ['Ma\ua78cya', 'maya', "ma'ya"],
  ['м’ята', "м'ята", 'мʼята', 'м"ята', 'мята'],
  ['ἀλλ\u1fbdἐγώ', 'αλλεγω', 'αλλ’εγω'],
  ['Հա՚մ', "հա'մ", 'համ'],
  ['François Müller Dvořák', 'Franc¸ois Mu¨ller Dvorˇa´k', 'Franc\u0327ois Mu\u0308ller Dvor\u030ca\u0301k'],
  ['O\u1ffdBrien', "o'brien", 'obrien'],
  // a geresh and a gershayim
  ['צ׳רלי', "צ'רלי", 'צ’רלי', 'צרלי'],
  ['צה״ל', 'צה"ל', 'צה”ל', "צה''ל", 'צהל'],
  ['ה"שלום"', 'השלום', 'השלומ'],
  // keyboards of Arabic, Persian, Urdu, Kurdish
  ['كتاب علي', 'کتاب علی', 'كتاب على', 'كِتَابُ عَلِيٍّ', 'کتـاب علی', 'ﻛﺘﺎﺏ علي'],
  ['أحمد', 'احمد', 'إحمد', 'آحمد', '\u0671حمد', '\u0672حمد'],
  ['مكتبة', 'مكتبه', 'مکتبہ', 'مکتبۀ', 'مکتبه\u0654', 'مکتبە', 'مکتبھ'],
  ['مسؤول هيئة', 'مسوول هييه'],
  ['رحمٰن له\u06e5', 'رحمن له'],
  ['کتاب\u200cها', 'کتابها'],
  ['کوردستان ڕۆژ دڵ', 'كوردستان رؤژ دل', 'كوردستان رِوژ دلَ'],
  // digits
  [
    'سنة ٢٠٢٤',
    'سنة ۲۰۲۴',
    'سنه 2024',
    'سنة ２０２４',
    'سنة २०२४',
    'سنة \u{1e952}\u{1e950}\u{1e952}\u{1e954}',
  ],
  ['ปี ๒๕๖๗', 'ปี 2567'],
  // letters of other keyboards, and of older spelling
  ['Ɗan Ƙasa', 'dan kasa'],
  ['Ɔkɔm Ɛwɛ Ʒiv', 'okom ewe ziv'],
  ['қазақ өзі ұлы', 'казак озі улы'],
  ['ґанок кӏант', 'ганок кіант'],
  ['Вѣстникъ Ѳома', 'Вестникъ Фома'],
  ['ספרים', 'ספרימ'],
  ['װאָס ייִד', 'וואס ייד'],
  ['ԵՎ', 'և', 'եւ'],
  ['Ինչո՞ւ', 'ինչու'],
  ['col·lecció', 'coŀlecció', 'col•leccio', 'colleccio'],
  ['кiт кIант', 'кіт кӏант', 'Кіт кіант'],
  ['\u0043\u006fбр\u0061ни\u0065 \u004dо\u0063\u006bва', 'Собрание Москва'],
  ['Ирон ӕвзаг Æма', 'Ирон æвзаг Ӕма', 'ирон аевзаг Æма'],
  ['аҥар аӡы аҵла аҽы', 'анар азы ацла ачы'],
  ['ꙗзыкъ мѧсо мѹжь мѫжь', 'языкъ мясо мужь мужь'],
  ['ГӀалгӀай кӀант', 'Г1алг1ай кIант', 'Гlалгlай к1ант', 'ГІАЛГІАЙ К1АНТ', 'г\u04cfалг\u04cfай кӏант'],
  ['Јован Ѕвезда', 'Jован Sвезда'],
  ['Шаһар һава', 'Шаhар hава', 'ШАҺАР ҺАВА', 'шахар хава'],
  // scripts of India, Thailand, Laos, Cambodia
  ['हिन्दी गङ्गा सम्बन्ध', 'हिंदी गंगा संबंध'],
  ['ज़मीन चाँद', 'जमीन चांद', 'ज\u093cमीन चाँद'],
  ['હિન્દી', 'હિંદી'],
  ['অহঙ্কার উৎসব', 'অহংকার উত্\u200dসব'],
  ['ഞാൻ എന്റെ', 'ഞാന്\u200d എൻറെ', 'ഞാന് എൻ്റെ'],
  ['ஶ்ரீ', 'ஸ்ரீ'],
  ['\u0e40\u0e40ม่น้ำ', 'แม่น้\u0e4dา'],
  ['น\u0e49\u0e33ใจ', 'น\u0e4d\u0e49าใจ', 'น\u0e49\u0e4dาใจ'],
  ['ท\u0e35\u0e48', 'ท\u0e48\u0e35'],
  ['ນ\u0ec9\u0eb3', 'ນ\u0ecd\u0ec9າ', 'ນ\u0ec9\u0ecdາ'],
  ['ပ\u102f\u1036', 'ပ\u1036\u102f'],
  ['က\u102d\u102f\u1037', 'က\u102f\u102d\u1037', 'က\u1037\u102f\u102d'],
  ['ல\u0bccகீகம் \u0b94வை', 'ல\u0bc6\u0bb3கீகம் \u0b92\u0bb3வை', 'ல\u0bc6\u0bd7கீகம் \u0b94வை'],
  ['\u0ec0\u0ec0ມ່', 'ແມ່'],
  ['ស\u17d2\u178aី', 'ស\u17d2\u178fី'],
  // homophones of Amharic
  ['ዓለም ፀሐይ ሠላም', 'አለም ጸሀይ ሰላም', 'ኣለም ፀሃይ ሰላም', 'ዐለም ጸኃይ ሠላም'],
  // kana, what is repeated, radicals, the ideograph of zero
  ['ノルウェイの森', 'のるうぇいの森', 'ﾉﾙｳｪｲの森'],
  ['ガルシア＝マルケス・ガボ', 'ガルシアマルケスガボ', 'ガルシア=マルケス･ガボ', 'ガルシア゠マルケス・ガボ'],
  ['加西亚·马尔克斯', '加西亚马尔克斯', '加西亚・马尔克斯', '加西亚•马尔克斯'],
  ['コーヒー', 'コ－ヒ－', 'ｺｰﾋｰ', 'コ−ヒ−'],
  ['こゝろ', 'こころ', 'ココロ', 'コヽロ'],
  ['がぱ', 'か゛は゜', 'ｶﾞﾊﾟ'],
  ['いすゞ', 'いすず', 'イスズ'],
  ['佐々木', '佐佐木'],
  ['関ヶ原', '関ケ原', '関け原'],
  ['髙﨑', '高崎'],
  ['⻑野⽇本', '長野日本'],
  ['二〇二四', '二○二四', '二◯二四'],
];

/** Texts that do not find each other. */
const APART: readonly (readonly [string, string])[] = [
  ['ماء', 'ما'],
  ['لڑکی', 'لڑکے'],
  ['گل', 'كل'],
  ['は', 'ば'],
  ['いって', 'いつて'],
  ['国', '國'],
  ['ড়', 'ড'],
  ['и', 'і'],
  ['Том1', 'Томі'],
  ['1а класс', 'іа класс'],
  ['Ту154М', 'Туі54М'],
  ['Б11Б', 'БііБ'],
  ['SQLом', 'SQіом'],
  ['Webом', 'Wевом'],
  ['foo "bar" baz', 'foobar'],
];

/** Titles in their order (rule F9). */
const SORTED =
  '|!|???|10 Days|9 Days|A Day|Day|Déchets|dechets (2)|New York|Newark|Öl|Zoo|Ωmega|война|שלום|الف|かな|百年|채식|𠮷野'.split(
    '|',
  );

/** Titles, and what they are sorted by without an article. */
const BARE: Readonly<Record<string, string>> = {
  'The Hobbit': 'hobbit',
  'AN Abundance': 'abundance',
  'L’Étranger': 'etranger',
  'Die Hard': 'hard',
  'El Aleph': 'aleph',
  'Um Rio': 'rio',
  'Gli indifferenti': 'indifferenti',
  'Het Achterhuis': 'achterhuis',
  'Az arany ember': 'arany ember',
  'En man som heter Ove': 'man som heter ove',
  'Det syvende barn': 'syvende barn',
  'The A B C': 'a b c',
  The: 'the',
  'A!': 'a',
  'Them and Us': 'them and us',
  'I, Robot': 'i robot',
  'As You Like It': 'as you like it',
};

/** Authors, and what they are sorted by: the last word of the first one, then the others. */
const FILED: Readonly<Record<string, string>> = {
  'J.R.R. Tolkien, Christopher Tolkien': 'tolkien j r r christopher tolkien',
  'Tolkien, J.R.R.': 'tolkien j r r',
  'Martin Luther King, Jr.': 'king martin luther jr',
  'Kurt Vonnegut Jr.': 'vonnegut kurt jr',
  'Andre Dubus III': 'dubus andre iii',
  'Jr.': 'jr',
  'Neil Gaiman & Terry Pratchett': 'gaiman neil terry pratchett',
  'Boileau; Narcejac': 'boileau narcejac',
  'Jacob und Wilhelm Grimm': 'jacob und wilhelm grimm',
  'Goscinny et Uderzo': 'goscinny et uderzo',
  'José Ortega y Gasset': 'ortega jose y gasset',
  'E. B. White': 'white e b',
  'Andy Weir': 'weir andy',
  'Caragh M. O’Brien': 'obrien caragh m',
  Homer: 'homer',
  '村上春树，林少华': '村上春树 林少华',
  'ガブリエル・ガルシア＝マルケス': 'まるけす がぶりえる がるしあ',
  ', Smith': 'smith',
  '???': '#00003f00003f00003f',
  '': '',
};

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

for (const spellings of SPELLINGS) {
  test(`rule F8: the spellings of ${spellings[0]}`, () => {
    for (const title of spellings)
      for (const search of spellings) assert.ok(isFound(title, search), `${title} is not found by ${search}`);
  });
}

for (const [one, other] of APART) {
  test(`rule F8: ${one} and ${other} do not find each other`, () => {
    assert.ok(!isFound(one, other), `${one} is found by ${other}`);
    assert.ok(!isFound(other, one), `${other} is found by ${one}`);
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

test('rule F9: titles without their article, and authors by the last word of the first one', () => {
  for (const [title, bare] of Object.entries(BARE)) assert.equal(withoutArticle(keyOf(title)), bare, title);
  for (const [author, filed] of Object.entries(FILED))
    assert.equal(filedAuthor(author, keyOf(author)), filed, author);
});
