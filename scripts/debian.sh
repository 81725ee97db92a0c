#!/bin/sh
# Unpacks packages of this machine's Debian, with all that they depend on, into a folder. Nothing is
# installed, and no script of a package runs. Manuals and translations are left out.
#
#   scripts/debian.sh FOLDER PACKAGE…
set -eu
root=$1
shift

archives=$(mktemp -d)
trap 'rm -rf "$archives"' EXIT
mkdir "$archives/partial"
# To a machine that has nothing yet, apt fetches every dependency.
apt-get --quiet=2 --yes --no-install-recommends --download-only \
    -o Dir::State::status=/dev/null -o Dir::Cache::archives="$archives" \
    -o Debug::NoLocking=true -o APT::Sandbox::User=root install "$@" >&2 || {
    echo "debian: apt-get cannot fetch $*; apt-get update may help" >&2
    exit 1
}
for archive in "$archives"/*.deb; do
    dpkg-deb --extract "$archive" "$root"
done
rm -rf "$root/usr/share/info" "$root/usr/share/locale" "$root/usr/share/man"
