// Owns: the key of a request that is carried out once, however often it is sent (rules I1 to I4).

/** Of a request with a key. */
export interface Once {
  readonly key: string;
  /** Equal for equal requests only. */
  readonly fingerprint: string;
}

/** What is kept with the key of a request. */
export interface KnownRequest {
  readonly fingerprint: string;
  /** The ids of its books, or the number of its event. */
  readonly ids: readonly number[];
}

/**
 * A key is removed when it is older than its lifetime and so many newer ones exist: a clock that is set forward must not let
 * a request that is sent again store its books twice (rule I4).
 */
export const KEPT_KEYS = 10_000;
