#!/bin/sh
# Builds the program. Options are cargo's: `--release` makes what the image holds and the bench measures, and
# `--profile quick` what `make run` and the tests start, in a fraction of the time.
#
# It is linked with glibc, statically, so that it runs anywhere. From glibc 2.34 (Debian 12) on, such a
# program finds users and groups without a library of the system. It looks up host names by itself. The option
# goes to the last step alone, because everything before it is the same in a program that is not static.
set -eu
cd "$(dirname "$0")/.."

case $(cc -print-file-name=libc.a 2>/dev/null) in
/*) ;;
*)
    echo "build: glibc's static library is missing (Debian: libc6-dev): the program will need this system's libraries" >&2
    exec cargo build --locked --package proxima --bin proxima "$@"
    ;;
esac
exec cargo rustc --locked --package proxima --bin proxima "$@" -- -C target-feature=+crt-static
