# shellcheck shell=sh
# shellcheck disable=SC2154 # b_D and b_M are set by whoever uses this
# The input journal: in/OFFSET is a symbolic link to `d.END.TAG`, the bytes from OFFSET to END, or to
# `close`. A link appears whole or not at all and only once, so an entry needs no lock, is never half
# there, and a retry finds it.

# entry OFFSET: sets b_e to what lies there: `d.END.TAG`, `close` or nothing.
entry() {
  b_e=$(ls -ln "$b_D/in/$1" 2>/dev/null)
  case $b_e in *' -> '*) b_e=${b_e##* -> } ;; *) b_e= ;; esac
}

# length: sets b_n to the length of the journal and b_closed to 1 if it ends there.
length() {
  # shellcheck disable=SC2046,SC2012 # two numbers; the names are ours
  set -- $(ls -ln "$b_D/in" 2>/dev/null | awk '
    $(NF - 1) == "->" { to[$(NF - 2)] = $NF }
    END {
      n = 0
      while (n in to && to[n] != "close") { split(to[n], part, "."); n = part[2] }
      print n, n in to
    }')
  b_n=${1:-0} b_closed=${2:-0}
}

# close_here: closes the journal where it ends.
close_here() {
  while :; do
    length
    [ "$b_closed" = 0 ] || return 0
    ln -s close "$b_D/in/$b_n" 2>/dev/null && return 0
    [ -h "$b_D/in/$b_n" ] || return 1
  done
}
