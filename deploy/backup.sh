#!/bin/sh
# Backs up the SQLite store of the service, and removes backups of this script that are older than two weeks, in this
# order: nothing is removed unless the backup has succeeded. The newest 14 stay, also after a day on which the clock was
# wrong. The store is that of DB_URL or DB_URL_FILE, else that of
# deploy/book-catalogue.service, relative to the current folder. Usage: backup.sh FOLDER
set -eu
etc=/etc/book-catalogue
project=$(dirname "$(dirname "$(readlink -f "$0")")")
mkdir -p "$1"
folder=$(readlink -f "$1")

if [ -z "${DB_URL-}${DB_URL_FILE-}" ]; then
  if [ -e "$etc/db_url" ]; then
    export DB_URL_FILE="$etc/db_url"
  else
    for name in DB_URL DB_URL_FILE; do
      value=$(sed -n "s/^$name=//p" "$etc/environment" 2>/dev/null | tail -n 1)
      if [ -n "$value" ]; then
        export "$name=$value"
      elif grep -q "^[[:blank:]]*$name[[:blank:]]*=" "$etc/environment" 2>/dev/null; then
        echo "$etc/environment: write $name=… without blanks before or after the name, and with a value." >&2
        exit 1
      fi
    done
  fi
fi

"$project/book-catalogue" backup "$folder/books-$(date +%F).db" --overwrite
name='books-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].db'
(cd "$folder" && ls -t) | grep -x 'books-....-..-..\.db' | tail -n +15 | while read -r old; do
  find "$folder/$old" -maxdepth 0 -type f -name "$name" -mtime +14 -delete
done
# What a killed backup has left.
hex='[0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
find "$folder" -maxdepth 1 -type f -name "$name.$hex$hex$hex.unfinished*" -mtime +1 -delete
