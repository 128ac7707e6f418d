# shellcheck shell=sh
# shellcheck disable=SC2154
# Sends a signal to the agent's process, after its identity was checked. Payload: run, attempt, name.
ready
IFS= read -r b_run && IFS= read -r b_attempt && IFS= read -r b_sig || exit 1
b_D=$b_B/runs/$b_run/$b_attempt
boot
state
b_sent=0
if [ "$b_state" = living ] && kill -s "$b_sig" "$b_P" 2>/dev/null; then b_sent=1; fi
say sent $b_sent
tell
say end
