// Owns: `completion`: a script with which a shell completes the names of commands and of their options.

import { type Arguments, type Command, type CommandContext, UsageError } from './command.ts';

const HELP = `Usage: book-catalogue completion bash|zsh|fish

Prints a script that completes commands, options and file names. To use it in every new shell, add to

  ~/.bashrc                    source <(book-catalogue completion bash)
  ~/.zshrc, after compinit     source <(book-catalogue completion zsh)
  ~/.config/fish/config.fish   book-catalogue completion fish | source
`;

/** Options of every command. */
const COMMON = ['help'];

/** What a shell completes: the options of each command, without dashes, by the name of the command. */
type Completions = ReadonlyMap<string, readonly string[]>;

const SCRIPTS: Readonly<Record<string, (completions: Completions) => string>> = { bash, zsh, fish };

/** @param load loads every command, by its name. */
export function completion(load: () => Promise<ReadonlyMap<string, Command>>): Command {
  return {
    HELP,
    OPERANDS: ['SHELL'],
    async run({ stdout }: CommandContext, { operands: [shell = ''] }: Arguments): Promise<number> {
      const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
      if (script === undefined) throw new UsageError('SHELL must be bash, zsh or fish.');
      const completions = new Map<string, readonly string[]>();
      for (const [name, { OPTIONS = {} }] of await load())
        completions.set(name, [...Object.keys(OPTIONS), ...COMMON]);
      stdout.write(script(completions));
      return 0;
    },
  };
}

function bash(completions: Completions): string {
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

/** Also a file `_book-catalogue` that compinit finds by its first line, and of which zsh makes the function of that name. */
function zsh(completions: Completions): string {
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

function fish(completions: Completions): string {
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

/** The branches of a shell's \`case\`, one for each command. */
function branches(completions: Completions, branch: (options: string) => string): string {
  return [...completions]
    .map(([name, options]) => `      ${name}) ${branch(options.map((option) => `--${option}`).join(' '))}`)
    .join('\n');
}
