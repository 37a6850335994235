// Owns: the error whose one sentence an operator reads.

/** A command or a start is not possible as asked. The message is shown as it is, without a stack. */
export class OperatorError extends Error {}

/** A value that the operator gave for an option is none that it can have. */
export class InvalidOption extends OperatorError {}
