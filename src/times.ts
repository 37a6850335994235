// Owns: every duration of the service and of its commands, in milliseconds: timeouts, pauses, intervals, lifetimes. Sums and
// multiples of them stand where they are used.
// Does not: have sizes, counts and other limits, which stand where they are used; or read a clock.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** From a request to its answer, whatever the store does (rule 23: within 5 s). */
const ANSWER = 4500;

/** After which a transaction of an import takes no more rows. */
const IMPORT_TRANSACTION = 50;

export const TIMES = {
  http: {
    /** For the headers of a request to arrive, and for the whole request (rule 22). */
    headers: 15 * SECOND,
    wholeRequest: 30 * SECOND,
    /**
     * That a connection without a request stays open (rule 22). Longer than the idle timeouts of common load balancers, so
     * that they, not we, close first.
     */
    keepAlive: 72 * SECOND,
    /** Between two looks at these times. */
    check: SECOND,
    /** For a client to read the next part of an answer, one mebibyte at most; and if there is no room (rule 22). */
    reader: 60 * SECOND,
    readerWithoutRoom: 5 * SECOND,
    /** For a client that is still sending to read its last answer. */
    linger: SECOND,
  },
  api: {
    /** Between two log lines about one fault, however many requests meet it. */
    faultLinesApart: SECOND,
    /** That a request may wait for a change (rule H3). */
    wait: MINUTE,
  },
  auth: {
    /** Of a token (A6). */
    tokenLifetime: 15 * MINUTE,
    /** For which failed logins are counted, from the first one (rule 29). */
    failureWindow: 15 * MINUTE,
    /** Between two delayed answers to one address or network. */
    failurePace: SECOND,
  },
  books: {
    deadline: ANSWER,
    /**
     * That a call waits until its batch is sent. If it waited until nearly the deadline, the store would work for calls that
     * are given up meanwhile.
     */
    queue: 2 * SECOND,
    /** After which a search waits for other long ones and begins again, so that no short one waits for it (rule 22). */
    shortSearch: 100,
    /** For all searches that wait to be the next short one, together. */
    shortSearches: 500,
    /** Until a part of an undo that failed is tried again. */
    undoPause: SECOND,
  },
  keys: {
    /** For which a key is known, at least (rule I4). */
    lifetime: 24 * HOUR,
  },
  history: {
    /** For which a row of the log of changes is kept, times `HISTORY`; and until the next look for older ones. */
    day: 24 * HOUR,
    prune: MINUTE,
  },
  lists: {
    firstChunk: ANSWER,
    /** That a list waits for another one to end (rule 22). */
    wait: 3 * SECOND,
    /** For the reader of a list to take its next part, if another list needs the place (rule 22). */
    stall: 10 * SECOND,
    /** After which one open list ends them all if SQLite's log of writes is far too long (rule 22). */
    long: MINUTE,
  },
  sqlite: {
    /** To wait for another process: when the file is opened; and in import, export, copy, backup and restore. */
    busy: 4 * SECOND,
    busyInBulk: 30 * SECOND,
    /** Of an import; and to the next one, in which those who wait to write do. */
    bulkTransaction: IMPORT_TRANSACTION,
    bulkPause: 5,
    /** Between two attempts to write. SQLite's own wait grows to 100 ms, and one of two busy processes hardly gets a turn. */
    busyPause: 0.5,
    /** That a read may wait for a file that is locked as a whole; the wait delays every request. */
    read: 250,
    /** After which a write is no longer started, so that it ends before its callers give up (rule 23). */
    write: 3 * SECOND,
    /** Of work in one transaction, before other work gets a turn. */
    turn: 5,
    /** For a page of changes, for which all requests wait. Then it ends with the books that it has. */
    page: 20,
    /** For a search, so that it ends before its caller gives up; before it, for indexing; after it, for counting all matches. */
    search: 4 * SECOND,
    catchUp: SECOND,
    count: 2 * SECOND,
    /** Of one transaction that indexes, for which writers wait. */
    step: 5,
    /** That it waits for others who write. */
    indexLock: 50,
    /** Until the next look for books to index; and, while requests wait for changes, for those of other processes. */
    idlePause: SECOND,
    changesPause: 100,
    /** Between two looks at the length of the write-ahead log (WAL). */
    walLook: 100,
    /** That all writers may wait for its readers, so that it starts over; and until the next attempt. */
    walRestart: 100,
    walPause: SECOND,
    /** That lists and searches wait for others if it is long; between two looks; and until the next such wait. */
    walWait: SECOND,
    walStep: 10,
    walWaitPause: 10 * SECOND,
  },
  postgres: {
    /** To connect to a host: for a command or at the start, and while calls wait, which then try again. One that is lost in the network must not delay later calls. */
    connectAtStart: 3 * SECOND,
    connect: 1500,
    /** That a host named earlier may answer later than another one and still be preferred. */
    preference: 500,
    /**
     * Without a byte before a connection is probed; ten seconds later it has failed. A long statement has no time limit, and
     * the system's own two hours are too long to wait for a host that has lost its power.
     */
    keepAliveDelay: 10 * SECOND,
    /** For a statement, by its pool: it ends before the call that waits for it does, since a later write could undo newer changes. */
    statement: { batches: 4 * SECOND, held: 4 * SECOND, searches: 4 * SECOND, counts: 2 * SECOND },
    /** For a list to wait for a lock. */
    listLock: 4 * SECOND,
    /** That all writers may wait for a lock before the snapshots of several servers; until the next attempt, with jitter; and for the snapshots. */
    barrier: 200,
    barrierPause: 20,
    snapshots: SECOND,
    /** For a silent server: a little longer than the server's own limits. */
    query: ANSWER - 200,
    /** From the server's end of a statement to its notice here. */
    notice: 100,
    /** Until an unused connection is closed. */
    idle: 30 * SECOND,
    /** After which a connection is replaced, so that changes in front of the server take effect. */
    lifetime: 30 * MINUTE,
    /** Until all hosts are asked again which of them takes writes: after a failure, with jitter, and without one. */
    searchPause: 200,
    watchPause: 2 * SECOND,
    /** Until a statement that was rolled back is tried again: doubled with each attempt, with full jitter. */
    retryPause: 10,
    /** To count some books. */
    count: 2 * SECOND,
    /** Before a search, for indexing; for a statement of it; and until the next look for books to index, with jitter. */
    catchUp: SECOND,
    indexStatement: ANSWER,
    idlePause: SECOND,
    /** Between two looks for changes of other processes, while requests wait for them. */
    changesPause: 200,
    /** Of work for the index, before other work gets a turn. */
    turn: 5,
    /** To wait for a lock on the index. */
    indexLock: 3 * SECOND,
    /** For a step of indexing, with its waits for locks. A server that takes longer has fallen silent. */
    indexStep: 20 * SECOND,
    /** To wait for a lock on a table that must be changed; until the next attempt, with jitter; and for all of them (rule 27). */
    structureLock: 100,
    structurePause: 500,
    structureWait: 8 * SECOND,
    /** For the server to describe its table. */
    describe: 3500,
    /** That a transaction of import, export or copy waits for a lock. Writers of others wait behind it. */
    bulkLock: 3 * SECOND,
  },
  standby: {
    /** That a request waits for a standby to have what the primary shows; and the start or an export, for each host. */
    snapshot: 500,
    connect: 1500,
    /** For the first chunk of a list; then the primary is asked. */
    firstChunk: 2 * SECOND,
    /** After a failure, until one request tries the next host. */
    rest: SECOND,
    /** Between two looks whether a standby has replayed enough. */
    lookPause: 2,
  },
  service: {
    /** For requests in progress to finish, and then for the store to close; then the log is written (rule 27: within 10 s). */
    grace: 5 * SECOND,
    storeGrace: 3 * SECOND,
    /**
     * That an open connection has for a last request. Closing it at once would lose a request on its way, and a proxy must
     * not retry one that is not idempotent.
     */
    lastRequest: 500,
    /** For the store to answer `storeAnswers`. */
    answer: ANSWER,
  },
  workers: {
    /** Between two attempts to replace a worker, if the first one fails. */
    retryPause: SECOND,
    /** After which a worker that has not stopped is killed; normally it needs less (rule 27). */
    lastResort: 9250,
    /** For a worker to answer a question; a worker that takes longer is left out. */
    answer: 2 * SECOND,
  },
  admin: {
    /** That /readyz waits for the store. */
    ready: 2 * SECOND,
    /** For a request to arrive. Clients of this port are near, and slow ones must not use up the service's connections. */
    request: 5 * SECOND,
    keepAlive: 30 * SECOND,
  },
  log: {
    /** After which an answer is slow. */
    slow: SECOND,
    /** Between two `slow request` lines: if a store is slow, all requests are, and would flood the log. */
    slowLinesApart: SECOND,
    /** That a line waits for others: writing each line alone cost a quarter of the reads per second. */
    gathering: 10,
    /** Until a failed write is tried again. */
    retryPause: 100,
    /** For writing the last lines of the log. */
    farewell: SECOND,
  },
  metrics: {
    /** Between two measurements of the event loop delay. */
    look: 20,
  },
  import: {
    transaction: IMPORT_TRANSACTION,
    /** Until the next question whether what was stored stays. A host may have to be waited for. */
    confirmPause: 2 * SECOND,
  },
  terminal: {
    /** Between two drawings of the progress. */
    draw: 100,
  },
  commands: {
    /** For `ready`; the service answers sooner. */
    ready: 4 * SECOND,
    /** After which `serve` ends even if a disk does not answer; normally it needs less (rule 27). */
    lastResort: 9500,
  },
  process: {
    /** One Ctrl-C may arrive as two signals: from the terminal, and from npm, which forwards it. */
    doubleSignal: 500,
    /** That a process which must end waits for a reader of its last words. Otherwise it waits as long as needed. */
    farewell: SECOND,
  },
} as const;

type Durations<Group> = {
  readonly [Name in keyof Group]: Group[Name] extends number ? number : Durations<Group[Name]>;
};

/** Of this shape, with any durations. */
export type Times = Durations<typeof TIMES>;
