// Owns: the files with which bash, zsh and fish complete commands and options.

import { COMMANDS } from '../src/cli.ts';

/** The options of each command, without dashes, by the name of the command. */
type Completions = ReadonlyMap<string, readonly string[]>;

/** @param script the one of a shell. */
export async function completionOf(script: (completions: Completions) => string): Promise<string> {
  const completions = new Map<string, readonly string[]>();
  for (const [name, [, load]] of Object.entries(COMMANDS))
    completions.set(name, [...Object.keys((await load()).OPTIONS ?? {}), 'help']);
  return script(completions);
}

export function bash(completions: Completions): string {
  return `_book_catalogue() {
  local words='${[...completions.keys()].join(' ')} --help --version'
  if ((COMP_CWORD > 1)); then
    case \${COMP_WORDS[1]} in
${branches(completions, (options) => `words='${options}' ;;`)}
      *) words= ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _book_catalogue book-catalogue
`;
}

/** In a folder of `fpath`, compinit finds it by its first line, and zsh makes the function of its name from it. */
export function zsh(completions: Completions): string {
  return `#compdef book-catalogue
_book_catalogue() {
  local -a options
  case $words[2] in
${branches(completions, (options) => `options=(${options}) ;;`)}
  esac
  if ((CURRENT == 2)); then
    compadd -- ${[...completions.keys()].join(' ')} --help --version
  elif [[ $PREFIX == -* ]]; then
    compadd -- $options
  else
    _files
  fi
}
if [[ $funcstack[1] == _book-catalogue ]]; then
  _book_catalogue
else
  compdef _book_catalogue book-catalogue
fi
`;
}

export function fish(completions: Completions): string {
  const lines = [...completions].map(([name, options]) => {
    const ofCommand = options.map((option) => {
      return `complete -c book-catalogue -n '__fish_seen_subcommand_from ${name}' -l ${option}\n`;
    });
    return `complete -c book-catalogue -n __fish_use_subcommand -f -a ${name}\n${ofCommand.join('')}`;
  });
  const general = ['help', 'version'].map(
    (option) => `complete -c book-catalogue -n __fish_use_subcommand -l ${option}\n`,
  );
  return [...lines, ...general].join('');
}

/** The branches of a shell's `case`, one for each command. */
function branches(completions: Completions, branch: (options: string) => string): string {
  return [...completions]
    .map(([name, options]) => `      ${name}) ${branch(options.map((option) => `--${option}`).join(' '))}`)
    .join('\n');
}
