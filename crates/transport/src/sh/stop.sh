# shellcheck shell=sh
# shellcheck disable=SC2154
# Stops an attempt and all that is left of its run. Payload: run, attempt, grace in ms.
ready
IFS= read -r b_run && IFS= read -r b_attempt && IFS= read -r b_grace || exit 1
b_D=$b_B/runs/$b_run/$b_attempt
boot
b_napped=0
while state; [ "$b_state" = starting ] && [ $b_napped -lt 3000 ]; do nap; done

# leaves MS: true once the agent ended, false when it did not within the time.
leaves() {
  b_napped=0
  while alive "$b_P" "$b_PS" "$b_PB"; do
    [ $b_napped -lt "$1" ] || return 1
    nap
  done
}
# What hangs below the agent, before it leaves and lets go of it: one with a clean environment could
# not be found afterwards.
cast "$b_run"
b_before=$(processes "$b_run" "$b_agents" '' | cut -d ' ' -f 1,3)
b_how=gone
if [ "$b_state" = living ]; then
  b_how=closed
  close_here
  poke "$b_D"
  if ! leaves $((b_grace / 4)); then
    b_how=terminated
    kill -s TERM "$b_P" 2>/dev/null
    if ! leaves $((b_grace - b_grace / 4)); then b_how=killed; fi
  fi
fi

# remaining: prints what of it still lives.
remaining() {
  [ -n "$b_before" ] || return 0
  echo "$b_before" | while read -r b_p b_s; do
    if alive "$b_p" "$b_s" "$b_BOOT"; then echo "$b_p"; fi
  done
}

# KILL to all that carries the marker or hangs below the agent, until nothing was found twice: a
# process may fork between the look and the signal.
b_empty=0 b_rounds=0 b_killed=0
while [ $b_empty -lt 2 ] && [ $b_rounds -lt 200 ]; do
  b_rounds=$((b_rounds + 1))
  cast "$b_run"
  b_found=0
  for b_pid in $(processes "$b_run" "$b_agents" '' | cut -d ' ' -f 1; remaining); do
    case " $b_holders " in *" $b_pid "*) continue ;; esac
    if kill -s KILL "$b_pid" 2>/dev/null; then b_killed=$((b_killed + 1)); fi
    b_found=1
  done
  if [ $b_found = 0 ]; then b_empty=$((b_empty + 1)); else b_empty=0; nap; fi
done
settle
case $b_state in gone) poke "$b_D" ;; esac
say stopped "$b_how" "$b_killed"
tell
list "$b_run"
say end
