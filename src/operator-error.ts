// Owns: the one sentence that an operator reads when something cannot be done.

/** A command or a start that cannot be done as asked. Its message is shown as it is, without a stack. */
export class OperatorError extends Error {}
