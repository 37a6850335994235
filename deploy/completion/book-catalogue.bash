_book_catalogue() {
  local words='serve demo config ready token import export copy undo forget backup restore verify man --help --version'
  if ((COMP_CWORD > 1)); then
    case ${COMP_WORDS[1]} in
      serve) words='--help' ;;
      demo) words='--help' ;;
      config) words='--help' ;;
      ready) words='--alive --help' ;;
      token) words='--help' ;;
      import) words='--dry-run --on-duplicate --on-conflict --doubtful --ids --header --format --title --author --year --sheet --encoding --delimiter --from-line --rejects --help' ;;
      export) words='--format --overwrite --help' ;;
      copy) words='--overwrite --help' ;;
      undo) words='--since --book --event --change --continue --list --yes --help' ;;
      forget) words='--yes --help' ;;
      backup) words='--overwrite --help' ;;
      restore) words='--overwrite --help' ;;
      verify) words='--username --password --secret --store-may-be-written --level --format --help' ;;
      man) words='--help' ;;
      *) words= ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _book_catalogue book-catalogue
