// Owns: which columns of a file are the title, the author and the year, and which say what a row is, by their usual names in
// other programs.
// Does not: accept a file without a column for the title, or the name of a column that does not exist.

import { type BookFields, FIELD_NAMES } from '../books/book.ts';
import { OperatorError } from '../operator-error.ts';

export type Field = keyof BookFields;

/** The name of the column for each field of a book. */
export interface Columns extends Readonly<Partial<Record<Field, string | undefined>>> {
  /** Columns whose first year is used for a book that has none in `year`. */
  readonly otherYears: readonly string[];
  /** Columns that say what a row is, if it is a book. */
  readonly kinds: readonly string[];
  /** Whether the columns are those of our exports, where every text means itself. */
  readonly isExport: boolean;
  /** The columns of the ids and of the tags. */
  readonly id?: string | undefined;
  readonly etag?: string | undefined;
}

/** No column has a usual name of the title, and the caller gave none. */
export class NoTitleColumn extends OperatorError {
  /** Of all columns. */
  readonly names: readonly string[];
  /** The first records, as `Reading` has them. */
  readonly first: readonly (readonly string[])[];
  /** The line, if they are the first row of a table: it may be a record, or stand above the header. */
  readonly line: number | undefined;

  constructor(names: readonly string[], first: NoTitleColumn['first'], line: number | undefined) {
    super(`There is no column for the title; set --title, --author and --year: ${list(names)}`);
    this.names = names;
    this.first = first;
    this.line = line;
  }
}

/** Names of columns that the caller gives: null uses no column, undefined looks for the usual names. */
export type WantedColumns = Readonly<Partial<Record<Field, string | null | undefined>>>;

/** The column of an export with the tags of its books. */
export const ETAG = 'etag';

/** The last column of a file of rejected rows, with the reasons. It is never read. */
export const REFUSED = 'refused';

/** Of the work: in Goodreads, goodbooks-10k, Open Library, BookBuddy, Best Books Ever. */
const YEARS_OF_THE_WORK = wordsOf(`
  original publication year, first publish year, original year published, first publish date, original date published`);

/** Of the edition: in Goodreads, Zotero, Kaggle, Book-Crossing, Inventaire, Hardcover, Libib, Calibre, Koha, DSpace; and in other languages. */
const YEARS_OF_THE_EDITION = wordsOf(`
    year published, publication year, published year, year of publication, publish year, publication date, edition publication date
    publish date, published date, date published, pubdate, copyrightdate, date issued, date of publication, pub year
    Erscheinungsjahr, Veröffentlichungsjahr, Publikationsjahr, Druckjahr, Ersch.-Jahr, Ausgabejahr, Jahr der Veröffentlichung, Erscheinungsdatum, Veröffentlichungsdatum
    année de publication, année d'édition, année de parution, année publication, année parution, date parution, date publication, date de publication, date de parution, date d'édition
    año de publicación, año de edición, año publicación, año pub., año edición, fecha de publicación, fecha de edición, fecha publicación
    anno di pubblicazione, anno di edizione, anno pubblicazione, anno pubbl., anno edizione, data di pubblicazione, data pubblicazione
    ano de publicação, ano de edição, ano publicação, ano edição, data de publicação, data de edição
    jaar van uitgave, jaar uitgave, jaar van publicatie, publicatiejaar, uitgavejaar, verschijningsjaar, jaar van verschijnen, publicatiedatum
    rok wydania, rok wyd., rok publikacji, data wydania, data publikacji
    utgivningsår, utgivet år, publiceringsår, tryckår, utgivningsdatum, utgivelsesår, udgivelsesår
    год издания, год публикации, год выпуска, год изд., год выхода, дата издания, дата публикации, рік видання
    rok vydání, kiadás éve, yayın yılı, basım yılı, julkaisuvuosi, 出版年, 発行年, 出版年份, 出版日期, 출판년도, 출판연도, 발행년도
    出版时间, 発行年月, 발행연도, utgitt, utgivet, udgivet, utg.år, godina izdanja, leto izida, rok vydania, anul apariției
    ilmumisaasta, izdošanas gads, leidimo metai, any de publicació, שנת הוצאה, سنة النشر, سال انتشار, سال نشر
    ปีที่พิมพ์, năm xuất bản, प्रकाशन वर्ष, tahun terbit`);

/**
 * The usual names, of programs and of tables in other languages; the first one that the file has wins. Case, accents, and
 * every character other than letters and digits are ignored: `Original Publication Year` is `original_publication_year`,
 * `Autor(a)` is `AUTORA`. The year of the work is preferred. Where a year is missing, that of another column replaces it if
 * its name speaks of a publication: beside a year, `Date` may be the day when a book was read. Dates at which a book was read,
 * added or entered (`Date Read`, `timestamp`, `Entry Date`) are not years, nor is Project Gutenberg's `Issued`, its own date.
 */
const USUAL_NAMES: Readonly<Record<Field, readonly string[]>> = {
  // "Name" is last: in other languages, it is often that of a person.
  title: wordsOf(`
    title, book title, edition title, original_title
    Titel, Buchtitel, Haupttitel, Hauptsachtitel, Titel des Buches
    titre, titre du livre, titre de l'ouvrage, titre propre
    título, título del libro, título do livro, título de la obra, título da obra
    titolo, titolo del libro
    boektitel, boktitel, tittel, otsikko, nimeke
    tytuł, tytuł książki, название, название книги, заглавие, наименование, наименование книги, назва
    název, cím, kitap adı, başlık, τίτλος, naslov, názov, titlu, pealkiri, nosaukums, pavadinimas, títol, judul, nhan đề, tên sách
    כותר, שם הספר, العنوان, عنوان, शीर्षक, ชื่อเรื่อง, назва книги, название произведения, заголовок, 題名, 题名, 書名, タイトル, 书名, 제목, 서명
    title proper, book name, obra, libro, livro, boek, книга, name`).map(plain),
  author: wordsOf(`
    author, authors, primary author, author_name, book author, creators, creator, authors labels, author_text
    author last first, author first last, author l-f, author_details, contributor author, main author, author/editor, authors name, author 1
    Autor, Autor/in, Autoren, Autor/innen, Verfasser, Verfasser/in, Verfasserin, Urheber, Schriftsteller
    auteur, auteur(s), auteur/autrice, auteur/trice, auteur(e), auteur(e)s, auteur.rice, auteur.ice, autrice, auteur principal, nom de l'auteur
    autor(a), autor/a, autor(es), autor/es, autores, autoria, nombre del autor, nome do autor, autor principal
    autore, autori, autore/i, autore/autrice, nome autore, autore principale
    schrijver, schrijvers, autorzy, autor(zy), författare, upphov, författare/upphov, upphovsperson, forfatter, kirjailija, tekijä
    автор, авторы, автор(ы), автор книги, фио автора, автори, autorka, autor/autorzy, autor nachname vorname, auteur·rice·s, upphovsman, avtor, autors, autorius, penulis, pengarang
    tác giả, מחבר, المؤلف, نویسنده, लेखक, ผู้แต่ง, autoři, szerző, szerzők, yazar, συγγραφέας
    著者, 著者名, 作者, 著作者, 저자, 저자명`).map(plain),
  year: [
    'year',
    ...YEARS_OF_THE_WORK,
    ...YEARS_OF_THE_EDITION,
    ...wordsOf(`
      Jahr, année, año, anno, ano, jaar, rok, år, год, рік, év, yıl, vuosi, έτος, 年份, 年, 연도, godina, leto, aasta, gads, metai, any, an, שנה, سنة, سال, ปี, năm, वर्ष, tahun
      published, first published, release year, release date, copyright, date`),
  ].map(plain),
};

/** Of Libib, LibraryThing, Zotero, Goodreads, CSL JSON, catalogues, and in other languages. */
const KINDS = new Set(
  wordsOf(`
    item type, type, kind, media, media type, medium, format, physical format, binding, material type, document type, product type
    product group, resource type, Typ, Medientyp, Medienart, Materialart, type de document, type de média, support, tipo
    tipo de documento, tipo de material, tipo di documento, formato, soort, materiaalsoort, тип, тип документа, вид`).map(
    plain,
  ),
);

/** Not `CD`, `Audio CD` and recordings: many are audiobooks. Any word that is not here may be a book. */
const OTHER_THINGS = new Set(
  wordsOf(`
    movie, movies, feature movie, film, films, feature film, motion picture, video, videos, video recording, videocassette
    video disc, DVD, DVDs, DVD video, Blu-ray, Blu-ray disc, VHS, VHS tape, TV, TV show, TV series, TV broadcast, television
    radio broadcast, broadcast, game, games, video game, video games, board game, board games, computer game, card game
    music, music CD, music album, vinyl, software, computer program, toy, toys, puzzle
    Spielfilm, Spiel, Spiele, Videospiel, Brettspiel, Computerspiel, Musik, Musik-CD, jeu, jeux, jeu vidéo, jeu de société, musique
    película, películas, juego, videojuego, juego de mesa, música, gioco, videogioco, musica, filme, filmes, jogo, videojogo
    spel, bordspel, muziek, gra, muzyka, фильм, игра, музыка, видео`).map(plain),
);

export function isOtherThing(kind: string): boolean {
  return kind !== '' && kind.length < SHOWN_LENGTH && OTHER_THINGS.has(plain(kind));
}

const PUBLICATIONS = [...YEARS_OF_THE_WORK, ...YEARS_OF_THE_EDITION].map(plain);

/** Those of exports before they had tags. */
const WITHOUT_TAGS: readonly string[] = ['id', ...FIELD_NAMES];

/** How many names a message shows, and how many characters of each. */
const SHOWN = 30;
const SHOWN_LENGTH = 40;

/**
 * @param names of all columns; of equal names, the first one counts.
 * @param first the first records, for people who choose the columns if none is the title.
 * @param line of the names, if they are the first row of a table: it may be a record.
 * @throws OperatorError; NoTitleColumn
 */
export function findColumns(
  names: readonly string[],
  wanted: WantedColumns,
  first: NoTitleColumn['first'] = [],
  line?: number,
): Columns {
  const byPlainName = new Map(names.toReversed().map((name) => [plain(name), name]));
  const namedAs = (usualNames: readonly string[]) =>
    usualNames.map((usual) => byPlainName.get(usual)).filter((found) => found !== undefined);
  const find = (field: Field) => {
    const name = wanted[field];
    if (name === undefined) return namedAs(USUAL_NAMES[field])[0];
    if (name === null) return undefined;
    const found = names.includes(name) ? name : byPlainName.get(plain(name));
    if (found === undefined)
      throw new OperatorError(`There is no column "${name}" for the ${field}: ${list(names)}`);
    return found;
  };
  const found = Object.fromEntries(FIELD_NAMES.map((field) => [field, find(field)]));
  const { year } = found;
  const isZotero = year !== undefined && plain(year) === 'publicationyear';
  const years = new Set(namedAs([...PUBLICATIONS, ...(isZotero ? ['date'] : [])]));
  const columns: Columns = {
    ...found,
    kinds: names.filter((name) => KINDS.has(plain(name)) && !Object.values(found).includes(name)),
    otherYears: wanted.year === undefined ? [...years].filter((name) => name !== year) : [],
    isExport: keepsIds(names, undefined),
    id: nameOf('id', names),
    etag: nameOf(ETAG, names),
  };
  if (columns.title === undefined) throw new NoTitleColumn(names, first, line);
  return columns;
}

/** Of all columns that are used. */
export function namesOf(columns: Columns): string[] {
  return [...FIELD_NAMES.map((field) => columns[field]), ...columns.otherYears].filter(
    (name) => name !== undefined,
  );
}

/**
 * Whether the ids of the file count. By default they do if it has tags, or the columns of an export without them, or of the rejected
 * rows of one.
 * @throws OperatorError when the ids must be kept and the file has none.
 */
export function keepsIds(names: readonly string[], wanted: 'keep' | 'new' | undefined): boolean {
  if (wanted === undefined) {
    const own = names.filter((name) => name !== REFUSED && name !== ''); // spreadsheets leave delimiters behind
    if (nameOf('id', own) === undefined) return false;
    // The records of a file of JSON may lack keys, and have them in any order.
    const areRejected = names.includes(REFUSED) && own.every((name) => WITHOUT_TAGS.includes(name));
    return nameOf(ETAG, own) !== undefined || areRejected || own.join() === WITHOUT_TAGS.join();
  }
  if (wanted === 'keep' && nameOf('id', names) === undefined) {
    throw new OperatorError(`Ids cannot be kept, since there is no column "id": ${list(names)}`);
  }
  return wanted === 'keep';
}

/** @returns how a file writes the name of one of our columns, perhaps in another case. */
function nameOf(own: string, names: readonly string[]): string | undefined {
  return names.includes(own) ? own : names.find((name) => plain(name) === own);
}

/** The names of a file's own columns. */
export function withoutReasons(names: readonly string[]): readonly string[] {
  return names.at(-1) === REFUSED ? names.slice(0, -1) : names;
}

function wordsOf(lines: string): string[] {
  return lines.trim().split(/,\s+|\n\s*/);
}

/** A name with damaged bytes stays another one than that without them. */
function plain(name: string): string {
  // Dublin Core, with the language of the text: `dc.title[en]`, `Dublin Core:Title`.
  const own = name.toLowerCase().replace(/^(?:dc|dcterms|dublin core)\s*[.:](.*?)(?:\[[\w-]*\])?$/, '$1');
  // Some letters are not composed of another one and an accent.
  const simple = own.replaceAll('ł', 'l').replaceAll('ı', 'i').replaceAll('ß', 'ss');
  return simple.normalize('NFD').replace(/[^\p{L}\p{N}\ufffd]+/gu, '');
}

/** The end of a sentence that names columns. */
export function list(names: readonly string[]): string {
  return `the columns are ${inShort(names)}.`;
}

/** Such as `A, B and 3 more`. */
export function inShort(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).map((name) => {
    const plainText = name.slice(0, SHOWN_LENGTH).replaceAll(/\p{Cc}+/gu, ' ');
    return name.length > SHOWN_LENGTH ? `${plainText}…` : plainText;
  });
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : '';
  return `${shown.join(', ')}${more}`;
}
