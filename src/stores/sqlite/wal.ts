// Owns: how long the write-ahead log (WAL) may become.

/** Bytes that it keeps on disk once it has started over. */
export const WAL_SIZE = 64 * 1024 * 1024;

/** Bytes beyond which new lists and searches wait for those in progress: half more than it keeps. */
export const LONG_WAL = 96 * 1024 * 1024;

/** Bytes beyond which all lists break off once one has been open for long. */
export const HUGE_WAL = 1024 * 1024 * 1024;
