// Owns: the error whose one sentence an operator reads.

/** A command or a start is not possible as asked. The message is shown as it is, without a stack. */
export class OperatorError extends Error {}

/** The operator gave an option a value that it cannot have. */
export class InvalidOption extends OperatorError {}
