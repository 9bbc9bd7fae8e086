#!/bin/bash
# Handles the variables that we use as the official entry point does: creates the data once, then runs the server.
set -Eeuo pipefail

given() {
    local file="${1}_FILE"
    if [ -n "${!file:-}" ]; then cat "${!file}"; else echo "${!1:-}"; fi
}

if [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi
if [ "$1" != postgres ]; then exec "$@"; fi

if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA"
    find /var/lib/postgresql \! -user postgres -exec chown postgres '{}' +
    chown postgres /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    user="$(given POSTGRES_USER)" user="${user:-postgres}"
    database="$(given POSTGRES_DB)" database="${database:-$user}"
    password="$(given POSTGRES_PASSWORD)"
    if [ -z "$password" ]; then
        echo "Error: Database is uninitialized and superuser password is not specified." >&2
        exit 1
    fi
    mkdir -p "$PGDATA"
    chmod 700 "$PGDATA"
    arguments=()
    # Unquoted on purpose: the variable contains several options of initdb.
    read -ra arguments <<<"$(given POSTGRES_INITDB_ARGS)"
    initdb -D "$PGDATA" --username="$user" --pwfile=<(printf '%s\n' "$password") --encoding=UTF8 --locale=C.UTF-8 \
        ${arguments[@]+"${arguments[@]}"}
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    if [ "$database" != postgres ]; then
        echo "create database \"$database\"" | postgres --single -D "$PGDATA" postgres >/dev/null
    fi
fi
exec "$@" -c "listen_addresses=*" -c unix_socket_directories=/var/run/postgresql
