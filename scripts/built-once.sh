# shellcheck shell=sh
# Other scripts source this one, in the folder of a module of Go below tests/lab. It builds programs of such
# modules into .cache, once for each version of them.

# The root of the repository as seen from there.
root=../../..

# `build_once NAME VERSION PACKAGE FLAGS SKIPPED` builds a program as .cache/NAME, with these flags of the
# linker. SKIPPED says what is skipped without it.
build_once() {
    built=$root/.cache/$1
    stamp=$(find . -name '*.go' -o -name 'go.*' | sort | xargs cat | sha256sum | cut -c1-16)
    [ "$(cat "$built.stamp" 2>/dev/null)" != "$stamp" ] || return 0
    command -v go >/dev/null || {
        echo "$1: skipped, as go is missing: $5"
        return 0
    }

    echo "$1: building $2, once"
    export CGO_ENABLED=0 GOFLAGS="-mod=readonly -p=2"
    # What cannot be fetched is no fault of ours; what then does not compile is.
    go list -deps "$3" >/dev/null || {
        echo "$1: skipped, as its modules cannot be fetched: $5"
        return 0
    }
    mkdir -p "$root/.cache"
    go build -trimpath -ldflags "-s -w $4" -o "$built" "$3"
    echo "$stamp" >"$built.stamp"
}
