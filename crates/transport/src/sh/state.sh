# shellcheck shell=sh
# shellcheck disable=SC2154
# state: sets b_state to what is known of the attempt in b_D: never, starting, living, ending (the
# agent ended, its holder is about to write the record), exited, gone, rebooted. Needs `boot`.
state() {
  b_held=0 b_rec=
  if [ -e "$b_D/exit" ]; then
    agent "$b_D"
    recorded
  elif agent "$b_D"; then
    if [ "$b_PB" != "$b_BOOT" ]; then
      b_state=rebooted
    else
      if alive "$b_H" "$b_HS" "$b_PB"; then b_held=1; fi
      if alive "$b_P" "$b_PS" "$b_PB"; then b_state=living
      elif [ -e "$b_D/exit" ]; then recorded
      elif [ $b_held = 1 ]; then b_state=ending
      else b_state=gone; fi
    fi
  else
    b_state=never b_n=1
    while [ -h "$b_D/lock.$b_n" ]; do
      owner "$b_D/lock.$b_n"
      if alive "$b_O" "$b_OS" "$b_OB"; then b_state=starting; fi
      b_n=$((b_n + 1))
    done
  fi
}
recorded() {
  b_state=exited b_rec=
  read -r b_rec <"$b_D/exit"
}
# settle: like state, but waits (3 s at most) for a record that is being written.
settle() {
  b_napped=0
  while state; [ "$b_state" = ending ] && [ $b_napped -lt 3000 ]; do nap; done
}
# tell: answers with the state.
tell() {
  b_fed=0
  [ ! -e "$b_D/fed" ] || read -r b_fed <"$b_D/fed"
  case $b_state in
    exited) say state exited "$b_rec" ;;
    living | ending) say state living "$b_P" "$b_held" "${b_fed:-0}" ;;
    *) say state "$b_state" ;;
  esac
}
