# shellcheck shell=sh
# shellcheck disable=SC2154
# Removes finished runs. Payload: age in seconds, then the runs to keep, one a line, `.`.
ready
IFS= read -r b_age || exit 1
b_keep=' '
while IFS= read -r b_l; do
  case $b_l in .) break ;; esac
  b_keep="$b_keep$b_l "
done
boot
b_now=$(date +%s)
# over RUN: true when no attempt of the run lives and the last ended long enough ago.
over() {
  for b_D in "$b_B/runs/$1"/*; do
    [ -d "$b_D" ] || continue
    state
    case $b_state in
      exited)
        b_rec=${b_rec% .}
        b_rec=${b_rec##* }
        [ $((b_now - b_rec)) -ge "$b_age" ] || return 1 ;;
      gone | rebooted | never)
        # Without a record only the folder's own time is known, in whole days.
        [ "$b_age" = 0 ] || [ -n "$(find "$b_D" -prune -mtime "+$((b_age / 86400))" 2>/dev/null)" ] || return 1 ;;
      *) return 2 ;;
    esac
  done
  # What an agent left running still writes there, and is found by its run.
  marked "$1"
  [ -z "$b_marked" ] || return 2
}
for b_f in "$b_B/runs"/*; do
  [ -d "$b_f" ] || continue
  b_run=${b_f##*/}
  case $b_run in *[!A-Za-z0-9._-]* | .*) continue ;; esac
  case $b_keep in *" $b_run "*) continue ;; esac
  over "$b_run"
  case $? in
    0)
      for b_D in "$b_f"/*; do poke "$b_D"; done
      if rm -rf "${b_f:?}"; then say removed "$b_run"; fi ;;
    2) say living "$b_run" ;;
  esac
done
# Locks of sessions and keys whose last owner is removed, and which nobody touched for a day.
for b_f in "$b_B/sessions"/* "$b_B/keys"/*; do
  [ -d "$b_f" ] || continue
  [ -n "$(find "$b_f" -prune -mtime +0 2>/dev/null)" ] || continue
  b_n=1
  while [ -h "$b_f/$((b_n + 1))" ]; do b_n=$((b_n + 1)); done
  owner "$b_f/$b_n"
  [ -d "$b_B/runs/${b_T%/*}" ] || rm -rf "${b_f:?}"
done
say end
