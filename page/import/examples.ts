// Owns: a file of books for a first try of an empty catalogue. It is imported, and undone, like any other.

import { IMPORT } from '../texts/import.ts';

/** Well-known books of several languages and scripts, one without an author, one from before the year 1. */
const BOOKS = `title,author,year
Pride and Prejudice,Jane Austen,1813
Emma,Jane Austen,1815
Frankenstein,Mary Shelley,1818
Jane Eyre,Charlotte Brontë,1847
Moby-Dick,Herman Melville,1851
Les Misérables,Victor Hugo,1862
Le Tour du monde en quatre-vingts jours,Jules Verne,1872
Don Quijote de la Mancha,Miguel de Cervantes,1605
La Regenta,Leopoldo Alas,1884
Die Leiden des jungen Werthers,Johann Wolfgang von Goethe,1774
Effi Briest,Theodor Fontane,1895
I promessi sposi,Alessandro Manzoni,1827
Os Maias,Eça de Queirós,1888
Gösta Berlings saga,Selma Lagerlöf,1891
Анна Каренина,Лев Толстой,1878
吾輩は猫である,夏目漱石,1905
紅樓夢,曹雪芹,1791
Ιλιάδα,Όμηρος,-750
Beowulf,,1000
The Time Machine,H. G. Wells,1895
`;

export function exampleFile(): File {
  return new File([BOOKS], IMPORT.examples, { type: 'text/csv' });
}
