#!/bin/sh
# Makes what compose.yaml needs in DIR: an authority, certificates of the server and the gateway, and the callers' token.
#
#   deploy/secrets.sh DIR [SERVER_NAME]...
#
# The server's certificate is for the names `server` and `localhost`, and for others that are given. An authority that is
# there already stays, as do the token and whatever else is there. Needs OpenSSL 1.1.1 or newer.
set -eu
umask 077

directory=${1:?"usage: deploy/secrets.sh DIR [SERVER_NAME]..."}
shift
mkdir -p "$directory"
cd "$directory"

new_key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

if [ ! -e authority.pem ]; then
    # shellcheck disable=SC2086 # several words
    openssl req -x509 $new_key -days 3650 -keyout authority.key -out authority.pem -subj "/CN=lanner authority" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2>/dev/null
fi

# Signs a certificate: NAME, then the names that it is for.
issue() {
    [ ! -e "$1.pem" ] || return 0
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$2" >"$1.extensions"
    # shellcheck disable=SC2086
    openssl req $new_key -keyout "$1.key" -out "$1.request" -subj "/CN=lanner $1" 2>/dev/null
    openssl x509 -req -in "$1.request" -CA authority.pem -CAkey authority.key -CAcreateserial -days 365 \
        -extfile "$1.extensions" -out "$1.pem" 2>/dev/null
    rm "$1.extensions" "$1.request"
}

names="DNS:server,DNS:localhost"
for name in "$@"; do
    names="$names,DNS:$name"
done
issue server "$names"
issue gateway "DNS:localhost,IP:127.0.0.1"
[ -e gateway.token ] || openssl rand -hex 32 >gateway.token
