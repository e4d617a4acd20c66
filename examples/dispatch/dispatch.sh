#!/bin/sh
# Runs a headless agent from cron, CI or a shell: dispatch.sh NAME BOSS HARNESS TASK [OPTION of `relay-mesh run`]...
set -eu
name=$1 boss=$2; shift 2
exec relay-mesh run "$@" --as "$name" --report "$boss" --reach edit --here
