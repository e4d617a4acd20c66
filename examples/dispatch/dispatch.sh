#!/usr/bin/env bash
# Runs a headless agent, or any command, as an agent of the mesh. It registers, reserves the files that the work
# will touch, sends heartbeats while the work runs, and releases everything and reports the result however it ends.
#
#   dispatch.sh --as NAME [--reserve PATTERN]... [--report AGENT] [--task TEXT] [--ttl 30m] -- COMMAND [ARG]...
#
# Exit codes: the command's own; 2 for a wrong command line; 6 if another agent holds a file to be reserved; 128
# plus the signal's number if a signal stopped it.
set -euo pipefail

relay=${RELAY_MESH_BIN:-relay-mesh}
beat_every=${DISPATCH_HEARTBEAT:-60}
ttl=30m
name='' report='' task=''
reservations=()

usage() {
    echo "usage: $0 --as NAME [--reserve PATTERN]... [--report AGENT] [--task TEXT] [--ttl TIME] -- COMMAND [ARG]..." >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --) shift; break ;;
        --as | --reserve | --report | --task | --ttl)
            [ $# -ge 2 ] || usage
            case $1 in
                --as) name=$2 ;;
                --reserve) reservations+=("$2") ;;
                --report) report=$2 ;;
                --task) task=$2 ;;
                --ttl) ttl=$2 ;;
            esac
            shift 2
            ;;
        *) usage ;;
    esac
done
[ -n "$name" ] && [ $# -gt 0 ] || usage
[ -n "$task" ] || task="runs $1"

output=$(mktemp "${TMPDIR:-/tmp}/dispatch.XXXXXX")
work='' beats='' reported=''

# The last part of the command's output. A message is text, so half a character at the cut and bytes that are not
# text are left out.
end_of_output() {
    if command -v iconv >/dev/null; then
        tail -c 4000 "$output" | iconv -c -f UTF-8 -t UTF-8 2>/dev/null || true
    else
        tail -c 4000 "$output" | LC_ALL=C tr -cd '\11\12\15\40-\176'
    fi
}

# Releases everything and reports the result. Runs once, at the end or at the first signal.
finish() {
    local code=$1 how=$2
    [ -z "$reported" ] || return 0
    reported=yes
    trap '' HUP INT TERM
    if [ -n "$beats" ]; then
        kill "$beats" 2>/dev/null || true
        wait "$beats" 2>/dev/null || true
    fi
    "$relay" release --all --from "$name" --quiet || echo "dispatch: the reservations of $name were not released and expire by themselves" >&2
    "$relay" heartbeat --from "$name" --task '' --quiet >/dev/null || true
    if [ -n "$report" ]; then
        { echo "$task: $how (exit code $code)"; echo; end_of_output; } |
            "$relay" send "$report" --stdin --from "$name" --subject "$task: $how" --quiet >/dev/null ||
            echo "dispatch: the report to $report was not sent" >&2
    fi
    rm -f "$output"
}

# After a signal: stops the command and waits for it before anything is released.
# shellcheck disable=SC2329 # the traps below call it
stopped() {
    local signal=$1 number=$2
    trap '' HUP INT TERM
    if [ -n "$work" ]; then
        kill -s TERM "$work" 2>/dev/null || true
        wait "$work" 2>/dev/null || true
    fi
    finish $((128 + number)) "stopped by SIG$signal"
    exit $((128 + number))
}
trap 'rm -f "$output"' EXIT
trap 'stopped HUP 1' HUP
trap 'stopped INT 2' INT
trap 'stopped TERM 15' TERM

# The name of the last run, with the mail that has come for it since, or a new name.
if ! "$relay" heartbeat --from "$name" --task "$task" --quiet >/dev/null 2>&1; then
    "$relay" register "$name" --program dispatch --task "$task" --quiet >/dev/null
fi
# From here on there is an agent that can release and report.
trap 'finish $? "failed before it began"' EXIT

# All of them or none. If another agent holds one, the report names it, and the next run may find it free.
reservation() {
    [ ${#reservations[@]} -eq 0 ] || "$relay" reserve "${reservations[@]}" --ttl "$ttl" --reason "$task" --from "$name" "$@"
}
reservation

# Heartbeats, and renewals of the reservations before they expire. Ends by itself if this script was killed.
(
    trap - EXIT
    while sleep "$beat_every" && kill -0 $$ 2>/dev/null; do
        "$relay" heartbeat --from "$name" --quiet >/dev/null || true
        reservation --quiet >/dev/null || true
    done
) &
beats=$!

# In the background, so that a signal is handled at once and not only when the command has ended.
"$@" >"$output" 2>&1 &
work=$!
code=0
wait "$work" || code=$?
work=''
cat "$output"
if [ "$code" -eq 0 ]; then finish 0 'done'; else finish "$code" failed; fi
exit "$code"
