# shellcheck shell=sh
# shellcheck disable=SC2154
# The same as follow.pl with nothing but sh: looks every 200 ms. The loop runs in the background and
# this shell waits for the end of its input, so that nothing is left behind when the link is cut.
say following sh
boot
# drain: sends what the spool has beyond b_at.
drain() {
  while :; do
    size "$b_D/out"
    b_n=$((b_n - b_at))
    [ "$b_n" -gt 0 ] || break
    [ "$b_n" -le 262144 ] || b_n=262144
    say out "$b_id" "$b_at" "$b_n"
    tail -c "+$((b_at + 1))" "$b_D/out" | head -c "$b_n"
    b_at=$((b_at + b_n))
  done
}
# look: one round for one attempt; false once it is over.
look() {
  # As in follow.pl: first what is known of the end, then the spool up to there.
  state
  case $b_state in
    never) if [ "$b_seen" = 1 ]; then b_state=deleted; fi ;;
    *) b_seen=1 ;;
  esac
  if [ -e "$b_D/out" ]; then
    size "$b_D/out"
    if [ "$b_n" -lt "$b_at" ]; then
      say short "$b_id" "$b_n"
      return 1
    fi
    drain
  fi
  if [ "$b_caught" = 0 ]; then
    say caught "$b_id"
    b_caught=1
  fi
  case $b_state in
    exited)
      b_rec=${b_rec#exit }
      b_rec=${b_rec% .}
      b_n=${b_rec#* }
      if [ "$b_at" -lt "${b_n%% *}" ]; then say short "$b_id" "$b_at"; else say exit "$b_id" "$b_rec"; fi
      return 1 ;;
    never | deleted | gone | rebooted)
      say "$b_state" "$b_id"
      return 1 ;;
  esac
}
# The attempts take turns; what must be kept of each lies in numbered variables.
rounds() {
  b_left=1
  while [ $b_left = 1 ]; do
    b_left=0
    for b_one in "$@"; do
      # shellcheck disable=SC2086 # id, run, attempt, offset
      turn $b_one
    done
    sleep 0.2 2>/dev/null || sleep 1
  done
}
turn() {
  b_id=$1 b_D=$b_B/runs/$2/$3
  eval "b_at=\${b_at_$1:-$4} b_seen=\${b_seen_$1:-0} b_done=\${b_done_$1:-0} b_caught=\${b_caught_$1:-0}"
  # shellcheck disable=SC2154 # set by eval
  [ "$b_done" = 0 ] || return 0
  if look; then b_left=1; else eval "b_done_$1=1"; fi
  eval "b_at_$1=\$b_at b_seen_$1=\$b_seen b_caught_$1=\$b_caught"
}
(
  exec </dev/null
  rounds "$@"
) &
b_loop=$!
cat >/dev/null
kill -9 $b_loop 2>/dev/null
