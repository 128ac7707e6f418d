# shellcheck shell=sh
# shellcheck disable=SC2154
# Lists the processes of a run and looks at output files. Payload: run, then one path a line, `.`.
ready
IFS= read -r b_run || exit 1
set --
while IFS= read -r b_l; do
  case $b_l in
    p*) plain "${b_l#?}"; set -- "$@" "$b_V" ;;
    .) break ;;
  esac
done
boot
list "$b_run"
# Looked at before it is opened: a FIFO would block, a link leads anywhere.
for b_f in "$@"; do
  if [ -h "$b_f" ]; then say file other 0
  elif [ ! -e "$b_f" ]; then say file missing 0
  elif [ ! -f "$b_f" ]; then say file other 0
  else
    size "$b_f"
    say file regular "$b_n" "$(tail -c 256 "$b_f" 2>/dev/null | hex)"
  fi
done
say end
