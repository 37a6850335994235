// Owns: what a setting is, and the kinds of which there are several (rule 25): whole numbers, switches and lists.

import type { Given } from './environment.ts';
import { OperatorError } from './operator-error.ts';

/** A variable. Its texts have code in backticks. */
export interface Setting<Value = unknown> {
  readonly name: string;
  readonly help: string;
  /** The default: a value, or words for it. */
  readonly absent: string;
  /** What of it is not shown: the whole, or the password in a URL. It may come from the file that `NAME_FILE` names. */
  readonly secret?: 'whole' | 'password';
  /** How `config` shows undefined. */
  readonly none?: string;
  /** @throws OperatorError if the value is invalid. */
  readonly read: (given: Given) => Value;
}

export function wholeNumber(
  name: string,
  help: string,
  absent: number,
  min: number,
  max: number,
): Setting<number> {
  const read = (given: Given) => readNumber(given, name, min, max) ?? absent;
  return { name, help, absent: `\`${absent}\``, read };
}

export function readNumber(
  given: Given,
  name: string,
  min: number,
  max: number,
  orWord = '',
): number | undefined {
  const text = given.text(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d{1,10}$/.test(text) && value >= min && value <= max) return value;
  throw new OperatorError(`${name} must be a whole number from ${min} to ${max}${orWord}, not "${text}".`);
}

/** In any case. YAML files turn `on` and `off` into `true` and `false` unless they are in quotation marks. */
export const ON = /^(on|true)$/i;
export const OFF = /^(off|false)$/i;

export function onOrOff(name: string, help: string, absent: 'on' | 'off'): Setting<boolean> {
  const read = (given: Given) => {
    const text = given.text(name) ?? absent;
    if (ON.test(text) || OFF.test(text)) return ON.test(text);
    throw new OperatorError(`${name} must be on or off, not "${text}".`);
  };
  return { name, help: `\`on\` or \`off\`: ${help}`, absent: `\`${absent}\``, read };
}

export function list(
  name: string,
  help: string,
  absent: string,
  what: string,
  isValid: (item: string) => boolean,
): Setting<readonly string[]> {
  const read = (given: Given) => {
    const text = given.text(name);
    const items = text === undefined ? [] : text.split(',').map((item) => item.trim());
    const wrong = items.find((item) => !isValid(item));
    if (wrong !== undefined) throw new OperatorError(`${name} must list ${what}, not "${wrong}".`);
    return items;
  };
  return { name, help, absent, read };
}
