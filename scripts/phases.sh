# shellcheck shell=sh
# Other scripts source this one. `phase NAME COMMAND…` runs a command. When the outermost script ends, it
# prints how long each phase took, in seconds and in seconds of processor time, which say more on a shared
# machine. The rows stay in target/phases.tsv, for scripts/phases.py.

outermost=
if [ -z "${PHASES:-}" ]; then
    PHASES=$(mktemp)
    export PHASES
    outermost=yes
    started=$(date +%s)
fi
running=
trap end_of_phases EXIT

end_of_phases() {
    [ -z "$running" ] || printf '%s\t-\t%s: not ended well\n' "$(($(date +%s) - begun))" "$running" >>"$PHASES"
    [ -n "$outermost" ] || return 0
    printf '\n%7s %5s  phase\n' seconds cpu
    while read -r seconds cpu name; do
        printf '%7s %5s  %s\n' "$seconds" "$cpu" "$name"
    done <"$PHASES"
    printf '%7s        all\n' $(($(date +%s) - started))
    mkdir -p target
    cp "$PHASES" target/phases.tsv
    rm -f "$PHASES" "$PHASES.times"
}

# Sets `cpu` to the processor time of all ended children. `times` in a subshell would report that subshell's
# children.
children() {
    times >"$PHASES.times"
    cpu=$(awk -F '[ms ]+' 'NR == 2 { print int(60 * ($1 + $3) + $2 + $4) }' "$PHASES.times")
}

phase() {
    running=$1
    shift
    echo "── $running"
    begun=$(date +%s)
    children
    before=$cpu
    "$@"
    children
    printf '%s\t%s\t%s\n' "$(($(date +%s) - begun))" "$((cpu - before))" "$running" >>"$PHASES"
    running=
}
