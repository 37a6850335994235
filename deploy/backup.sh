#!/bin/sh
# Backs up the SQLite store of DB_URL, relative to the current folder, and removes backups older than two weeks, in this
# order: nothing is removed unless the backup has succeeded. Usage: backup.sh FOLDER
set -eu
project=$(dirname "$(dirname "$(readlink -f "$0")")")
"$project/book-catalogue" backup "$1/books-$(date +%F).db" --overwrite
find "$1" -name 'books-*.db' -mtime +14 -delete
