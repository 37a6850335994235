// Owns: every duration of the service and of its commands, in milliseconds: timeouts, pauses, intervals, lifetimes. Sums and
// multiples of them stand where they are used. Pauses "with jitter" are from half to one and a half times their value.
// Does not: have sizes, counts and other limits, which stand where they are used; or read a clock.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** From a request to its answer, whatever the store does (rule 23: within 5 s). */
const ANSWER = 4500;

/** Since a process was seen, until it no longer works on its import (rule M7). */
const LOST = 10 * SECOND;

export const TIMES = {
  http: {
    headers: 15 * SECOND, // for the headers of a request to arrive (rule 22)
    wholeRequest: 30 * SECOND, // for the whole request to arrive (rule 22)
    /** A connection without a request stays open as long (rule 22). Common load balancers wait less, so they close first. */
    keepAlive: 72 * SECOND,
    check: SECOND, // between two looks for requests and connections that exceed these times
    reader: 60 * SECOND, // for a client to read the next part of an answer: a mebibyte at most (rule 22)
    readerWithoutRoom: 5 * SECOND, // the same, while there is no room for more answers (rule 22)
    linger: SECOND, // for a client that is still sending to read its last answer
  },
  api: {
    faultLinesApart: SECOND, // between two log lines about one fault, however many requests meet it
    wait: MINUTE, // the longest that a request may wait for a change (rule H3)
  },
  auth: {
    tokenLifetime: 15 * MINUTE, // (rule A6)
    sessionIdle: 30 * MINUTE, // from one renewal of a session to the last moment for the next (rule S2)
    sessionLongest: 12 * HOUR, // from the login to the end of a session, however often it is renewed (rule S2)
    failureWindow: 15 * MINUTE, // failed logins are counted as long, from the first one (rule 29)
    failurePace: SECOND, // between two delayed answers to one address or network
  },
  books: {
    deadline: ANSWER, // from a call of the store to its answer
    /** For a call until its batch is sent. With a longer one, the store would work for calls that are given up meanwhile. */
    queue: 2 * SECOND,
    /** A longer search gives up and begins again among the long ones, so that no short search waits for it (rule 22). */
    shortSearch: 100,
    shortSearches: 500, // for all short searches that wait, together
    suggestions: 250, // for other spellings of a search that finds nothing; then those are suggested that were found
    undoPause: SECOND, // after a part of an undo has failed, until the next attempt
  },
  keys: {
    lifetime: 24 * HOUR, // an idempotency key is known for at least as long (rule I4)
  },
  history: {
    day: 24 * HOUR, // the unit of `HISTORY`
    prune: MINUTE, // between two looks for old rows of the log of changes
  },
  lists: {
    firstChunk: ANSWER, // until a list has its first books
    wait: 3 * SECOND, // for a list until another one ends (rule 22)
    stall: 10 * SECOND, // for the reader of a list to take its next part, if another list waits (rule 22)
    long: MINUTE, // if the WAL of SQLite is huge, all lists end once one has been open as long (rule 22)
  },
  sqlite: {
    busy: 4 * SECOND, // to open a file that another process has locked
    busyInBulk: 30 * SECOND, // the same, for import, export, copy, backup and restore
    bulkTransaction: 25, // of rows that an import stores in one transaction, before its commit
    bulkPause: 2, // after it, in which other processes write
    importLost: LOST,
    importPause: 500, // between two looks whether another process still works on the same import
    /** Between two attempts to write. SQLite's own pauses grow to 100 ms, and one of two busy processes hardly gets a turn. */
    busyPause: 0.5,
    read: 250, // for a read of a file that is locked as a whole; it delays every request
    write: 3 * SECOND, // for a write until it starts: it ends before its callers give up (rule 23)
    turn: 5, // of work in one transaction, before other work of the process gets a turn
    page: 20, // to put a page of changes together, while all requests wait; it then ends with the books that it has
    search: 4 * SECOND, // for a search: it ends before its caller gives up
    catchUp: SECOND, // for indexing before a search
    count: 2 * SECOND, // for counting all matches of a search
    step: 5, // of one transaction that indexes, while writers wait
    indexLock: 50, // for such a transaction until others have written
    idlePause: SECOND, // between two looks for books to index
    changesPause: 100, // between two looks for changes of other processes, while requests wait for changes
    walLook: 100, // between two looks at the length of the write-ahead log (WAL)
    walRestart: 100, // all writers may wait as long for readers of the WAL, so that it starts over
    walPause: SECOND, // after an attempt to start it over has failed, until the next one
    walWait: SECOND, // for new lists and searches until a long WAL has started over
    walStep: 10, // between two looks whether it has
    walWaitPause: 10 * SECOND, // after such a wait has not helped, until the next one
  },
  postgres: {
    connectAtStart: 3 * SECOND, // for a command or a start to connect to a host
    connect: 1500, // for a call to connect to a host; then it tries again, perhaps another host
    preference: 500, // an earlier host in `DB_URL` may answer so much later than another one and is still preferred
    /**
     * A connection without a byte is probed after this time, and has failed ten seconds later. A long statement has no time
     * limit, and the two hours of the system are too long to wait for a host that has lost its power.
     */
    keepAliveDelay: 10 * SECOND,
    /** For a statement, by its pool. It ends before its caller gives up: a later write could undo newer changes. */
    statement: { batches: 4 * SECOND, held: 4 * SECOND, searches: 4 * SECOND, counts: 2 * SECOND },
    nextStatement: SECOND, // for the next statement of a transaction at least, which arrives late on a busy machine
    listLock: 4 * SECOND, // for a list to wait for a lock
    barrier: 200, // all writers may wait as long for the lock with which several servers get one snapshot
    barrierPause: 20, // after an attempt to lock, until the next one, with jitter
    snapshots: SECOND, // for the snapshots of several servers, while writers wait
    query: ANSWER - 200, // for any answer of a server: a little longer than the limits that the server itself has
    notice: 100, // from the end of a statement on the server to its notice here
    idle: 30 * SECOND, // until an unused connection is closed
    lifetime: 30 * MINUTE, // of a connection, so that changes in front of the server take effect
    searchPause: 200, // after a failure, until all hosts are asked which of them takes writes, with jitter
    watchPause: 2 * SECOND, // the same, without a failure
    /** After a statement was rolled back, until the next attempt: doubled with each one, with full jitter. */
    retryPause: 10,
    count: 2 * SECOND, // for counting some books
    catchUp: SECOND, // for indexing before a search
    indexStatement: ANSWER, // for a statement about the index or the log
    idlePause: SECOND, // between two looks for books to index, with jitter
    changesPause: 200, // between two looks for changes of other processes, while requests wait for changes
    turn: 5, // of work for the index, before other work of the process gets a turn
    indexLock: 3 * SECOND, // for a lock on the index
    indexStep: 20 * SECOND, // for a step of indexing with its locks; a server that takes longer has fallen silent
    structureLock: 100, // for a lock on a table that must be changed
    structurePause: 500, // after an attempt to lock it, until the next one, with jitter
    structureWait: 8 * SECOND, // for all of these attempts (rule 27)
    describe: 3500, // for the server to describe its tables
    bulkLock: 3 * SECOND, // for a lock of import, export or copy; other writers wait behind it
  },
  standby: {
    snapshot: 500, // for a request until a standby has what the primary shows
    connect: 1500, // the same, for the start or an export and for each host
    firstChunk: 2 * SECOND, // for the first books of a list; then the primary is asked
    rest: SECOND, // after a failure, until one request tries the next host
    lookPause: 2, // between two looks whether a standby has replayed enough
  },
  service: {
    grace: 5 * SECOND, // at the end, for requests in progress (rule 27: within 10 s)
    storeGrace: 3 * SECOND, // after that, for the store to close
    /** For a last request on an open connection. If it closed at once, a request on its way would be lost, which no proxy may repeat. */
    lastRequest: 500,
    answer: ANSWER, // for the store to answer `storeAnswers`
  },
  workers: {
    retryPause: SECOND, // after a worker could not be replaced, until the next attempt
    lastResort: 9250, // a worker that has not stopped by then is killed; normally it needs less (rule 27)
    answer: 2 * SECOND, // for a worker to answer a question; a slower one is left out
  },
  admin: {
    ready: 2 * SECOND, // for the store, when /readyz asks it
    request: 5 * SECOND, // for a request to arrive: clients are near, and slow ones must not use up the connections
    keepAlive: 30 * SECOND, // a connection without a request stays open as long
  },
  log: {
    slow: SECOND, // a slower answer gets a line
    slowLinesApart: SECOND, // between two such lines: if a store is slow, all requests are, and would flood the log
    gathering: 10, // for a line to wait for others: writing each line alone cost a quarter of the reads per second
    retryPause: 100, // after a write has failed, until the next attempt
    farewell: SECOND, // for writing the last lines
  },
  metrics: {
    look: 20, // between two measurements of the event loop delay
  },
  imports: {
    answer: 4 * SECOND, // for an import to end before it is answered; it continues
    poll: 100, // between two looks whether another process has ended an import
    look: SECOND, // between two looks at what other processes want of files that this one has, and two notes of progress
    seen: 3 * SECOND, // between two notes that a file is still here
    lost: LOST,
    progress: 100, // between two reports of how far an import is
    held: 10 * MINUTE, // the file of an import that is not stored
    grace: 4 * SECOND, // at the end, for an import to stop between two steps
  },
  terminal: {
    draw: 100, // between two drawings of the progress
  },
  commands: {
    ready: 4 * SECOND, // for the answer to `ready`, which comes sooner
    lastResort: 9500, // `serve` ends by then even if a disk does not answer; normally it needs less (rule 27)
  },
  process: {
    doubleSignal: 500, // one Ctrl-C may arrive as two signals: from the terminal, and from npm
    farewell: SECOND, // for the reader of the last words of a process that must end; otherwise it waits as long as needed
  },
} as const;

type Durations<Group> = {
  readonly [Name in keyof Group]: Group[Name] extends number ? number : Durations<Group[Name]>;
};

/** The same names with any durations. */
export type Times = Durations<typeof TIMES>;
