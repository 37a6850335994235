// Owns: how long the write-ahead log may become.

/** Bytes that the log keeps on disk once it has started over. */
export const LOG_SIZE = 64 * 1024 * 1024;

/** Bytes beyond which new lists and searches wait for those in progress: half more than it keeps. */
export const LONG_LOG = 96 * 1024 * 1024;

/** Bytes beyond which all lists break off once one has been open for long. */
export const HUGE_LOG = 1024 * 1024 * 1024;
