// Owns: the one sentence that an operator reads when something cannot be done.

/** What was asked for cannot be done with what was given. The message is shown as it is, without a stack. */
export class Refusal extends Error {}
