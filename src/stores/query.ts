// Owns: the form in which both stores are asked by the same SQL.

/** Sends a statement with the values of `$1`, `$2` and so on, and returns its rows. */
export type Query = <Row extends object>(text: string, values?: unknown[]) => Promise<Row[]>;
