# shellcheck shell=sh
# shellcheck disable=SC2154
# Appends to the input journal, or closes it. Payload: run, attempt, offset, size or `close`, bytes.
umask 077
ready
IFS= read -r b_run && IFS= read -r b_attempt && IFS= read -r b_off && IFS= read -r b_size || exit 1
b_D=$b_B/runs/$b_run/$b_attempt
b_K=$b_D/in/d.$b_M
finish() {
  rm -f "$b_K"
  say "$@"
  say end
  exit 0
}
if ! agent "$b_D"; then finish never; fi
if [ "$b_size" = close ]; then
  b_end=$b_off b_new=close
else
  b_end=$((b_off + b_size)) b_new=d.$b_end.$b_M
  b_K=$b_D/in/$b_new
  b_e=$(LC_ALL=C cat 2>&1 >"$b_K") || case $b_e in
    *'No space left'* | *'quota exceeded'*) finish nospace ;;
    *) finish broken "$b_e" ;;
  esac
  size "$b_K"
  # Cut in the middle: nothing was appended, and nobody is there to hear it.
  [ "$b_n" = "$b_size" ] || finish short
fi
boot
b_gone=1
if [ ! -e "$b_D/exit" ] && alive "$b_P" "$b_PS" "$b_PB"; then b_gone=0; fi

# there: answers if an entry lies at the offset already.
there() {
  entry "$b_off"
  [ -n "$b_e" ] || return 0
  if [ "$b_size" = close ]; then
    if [ "$b_e" = close ]; then finish appended "$b_end" 1 $b_gone; fi
  else
    case $b_e in
      d."$b_end".*) if cmp -s "$b_D/in/$b_e" "$b_K"; then finish appended "$b_end" 1 $b_gone; fi ;;
    esac
  fi
  length
  finish conflict "$b_n" "$b_closed"
}
there
if [ $b_gone = 1 ]; then finish gone; fi
length
if [ "$b_closed" = 1 ] || [ "$b_n" != "$b_off" ]; then finish conflict "$b_n" "$b_closed"; fi
if ! b_f=$(LC_ALL=C ln -s "$b_new" "$b_D/in/$b_off" 2>&1); then
  there
  case $b_f in *'No space left'* | *'quota exceeded'*) finish nospace ;; esac
  finish broken "$b_f"
fi
poke "$b_D"
say appended "$b_end" 0 0
say end
