#!/usr/bin/env bash
# Runs a headless agent, or any command, as an agent of the mesh: it registers, claims what the work will touch,
# gives signs of life while it runs, and gives everything back and reports however it ends.
#
#   dispatch.sh --as NAME [--claim PATTERN]... [--report AGENT] [--task TEXT] [--ttl 30m] -- COMMAND [ARG]...
#
# Exit codes: the command's own; 2 for a wrong command line; 6 where somebody else holds what is claimed; 128 and
# the signal's number where it was stopped.
set -euo pipefail

relay=${RELAY_MESH_BIN:-relay-mesh}
beat_every=${DISPATCH_HEARTBEAT:-60}
ttl=30m
name='' report='' task=''
claims=()

usage() {
    echo "usage: $0 --as NAME [--claim PATTERN]... [--report AGENT] [--task TEXT] [--ttl TIME] -- COMMAND [ARG]..." >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --) shift; break ;;
        --as | --claim | --report | --task | --ttl)
            [ $# -ge 2 ] || usage
            case $1 in
                --as) name=$2 ;;
                --claim) claims+=("$2") ;;
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

# The last of what the command printed. A message is text: the rest of a letter that was cut, and what is none, is
# left out.
end_of_output() {
    if command -v iconv >/dev/null; then
        tail -c 4000 "$output" | iconv -c -f UTF-8 -t UTF-8 2>/dev/null || true
    else
        tail -c 4000 "$output" | LC_ALL=C tr -cd '\11\12\15\40-\176'
    fi
}

# Gives everything back, and says how it went. Done once, whatever comes first: the end or a signal.
finish() {
    local code=$1 how=$2
    [ -z "$reported" ] || return 0
    reported=yes
    trap '' HUP INT TERM
    if [ -n "$beats" ]; then
        kill "$beats" 2>/dev/null || true
        wait "$beats" 2>/dev/null || true
    fi
    "$relay" release --all --from "$name" --quiet || echo "dispatch: what $name had claimed lapses by itself" >&2
    "$relay" heartbeat --from "$name" --task '' --quiet >/dev/null || true
    if [ -n "$report" ]; then
        { echo "$task: $how (exit code $code)"; echo; end_of_output; } |
            "$relay" send "$report" --stdin --from "$name" --subject "$task: $how" --quiet >/dev/null ||
            echo "dispatch: the report to $report was not sent" >&2
    fi
    rm -f "$output"
}

# Stopped from outside: the command is stopped too, and waited for, before anything is given back.
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

# The name of the last run, with whatever mail has come for it since; a new one at first.
if ! "$relay" heartbeat --from "$name" --task "$task" --quiet >/dev/null 2>&1; then
    "$relay" register "$name" --program dispatch --task "$task" --quiet >/dev/null
fi
# From here on there is somebody to give back and to report.
trap 'finish $? "failed before it began"' EXIT

# All of it or nothing. Where somebody else holds it, they are named, and the next run may find it free.
claim() {
    [ ${#claims[@]} -eq 0 ] || "$relay" reserve "${claims[@]}" --ttl "$ttl" --reason "$task" --from "$name" "$@"
}
claim

# Signs of life, and the claims again before they lapse. It ends by itself where this script was killed.
(
    trap - EXIT
    while sleep "$beat_every" && kill -0 $$ 2>/dev/null; do
        "$relay" heartbeat --from "$name" --quiet >/dev/null || true
        claim --quiet >/dev/null || true
    done
) &
beats=$!

# In the background, so that a signal is heard at once and not only when the command has ended.
"$@" >"$output" 2>&1 &
work=$!
code=0
wait "$work" || code=$?
work=''
cat "$output"
if [ "$code" -eq 0 ]; then finish 0 'done'; else finish "$code" failed; fi
exit "$code"
