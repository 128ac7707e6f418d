# shellcheck shell=sh
# shellcheck disable=SC2034 # what is set here is used by the script that follows
# Shared head of the scripts. Every variable begins with b_: a user may have exported any other name,
# and assigning to it here would change what the agent gets. b_M, the marker of our lines, is set by
# the line sent before the script. With /proc, all of this is builtins: a request costs few forks.
unset BURSAR_RUN BURSAR_ATTEMPT CDPATH
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
case ${XDG_STATE_HOME:-} in
  /*) b_B=$XDG_STATE_HOME/bursar ;;
  *) b_B=${HOME:+$HOME/.local/state/bursar} ;;
esac
b_PROC=
if [ -r /proc/self/stat ]; then b_PROC=1; fi

# say WORD...: one answer line.
say() { printf '%s %s\n' "$b_M" "$*"; }

# ready: tells that the script is parsed and running; only then may payload be sent, since some
# shells read ahead. The newline ends whatever start-up files printed.
ready() { printf '\n%s ready\n' "$b_M"; }

# decode TEXT: sets b_V to the bytes of an octal-escaped text, trailing newlines included.
decode() {
  b_V=$(printf '%b_' "$1")
  b_V=${b_V%_}
}

# plain LINE: sets b_V to the value of a tagged payload line; `.` raw, `!` escaped.
plain() {
  case $1 in
    '!'*) decode "${1#!}" ;;
    *) b_V=${1#.} ;;
  esac
}

# expand PATH: sets b_V to a path that is safe for every tool: `~` is the home directory, and nothing
# begins with a dash.
# shellcheck disable=SC2088 # meant literally
expand() {
  case $1 in
    '~') b_V=$HOME ;;
    '~/'*) b_V=$HOME/${1#??} ;;
    /*) b_V=$1 ;;
    *) b_V=./$1 ;;
  esac
}

# boot: sets b_BOOT to an id of this boot.
boot() {
  b_BOOT=-
  if [ -r /proc/sys/kernel/random/boot_id ]; then
    read -r b_BOOT </proc/sys/kernel/random/boot_id
  else
    b_BOOT=$(sysctl -n kern.bootsessionuuid 2>/dev/null)
    b_BOOT=${b_BOOT:--}
  fi
}

# slurp PID: sets b_L to the fields of /proc/PID/stat after the command's name, or to nothing. The
# name may hold spaces, brackets and newlines; the numbers after its last `) ` may not.
slurp() {
  b_L=
  while IFS= read -r b_l; do b_L="$b_L$b_l "; done 2>/dev/null <"/proc/$1/stat"
  b_L=${b_L##*) }
}

# started PID: sets b_S to the start time of a living process, or to nothing. A zombie is dead.
started() {
  b_S=
  if [ -n "$b_PROC" ]; then
    slurp "$1"
    case $b_L in '' | Z* | X*) return 0 ;; esac
    # shellcheck disable=SC2086 # numbers, to be split
    set -- $b_L
    b_S=${20}
  else
    b_S=$(LC_ALL=C TZ=UTC0 ps -o state=,lstart= -p "$1" 2>/dev/null | tr -s ' ' _)
    b_S=${b_S#_}
    case $b_S in Z*) b_S= ;; *) b_S=${b_S#*_} ;; esac
  fi
}

# alive PID START BOOT: true when that very process lives.
alive() {
  case $1 in '' | *[!0-9]* | 0 | 1) return 1 ;; esac
  [ "$3" = "$b_BOOT" ] || return 1
  started "$1"
  [ -n "$b_S" ] && [ "$b_S" = "$2" ]
}

# agent DIR: reads DIR/pid into b_P, b_PS (start), b_PB (boot), b_H, b_HS (holder and its start). False while
# there is none, or a half-written one (the last word is a full stop).
agent() {
  b_P='' b_PS='' b_PB='' b_H='' b_HS=''
  [ -e "$1/pid" ] || return 1
  b_E=
  read -r b_P b_PS b_PB b_H b_HS b_E 2>/dev/null <"$1/pid"
  [ "$b_E" = . ]
}

# owner LINK: reads an owner-naming lock into b_T (its whole text), b_O, b_OS, b_OB. One exec.
owner() {
  b_T=$(ls -ln "$1" 2>/dev/null)
  case $b_T in *' -> '*) b_T=${b_T##* -> } ;; *) b_T= ;; esac
  b_O=${b_T##*/}
  b_OB=${b_O##*:}
  b_O=${b_O%:*}
  b_OS=${b_O#*:}
  b_O=${b_O%%:*}
}

# size FILE: sets b_n to its size. From the inode: `wc -c` reads the file in some systems.
size() {
  # shellcheck disable=SC2046 # fields, to be split; the name comes after the size
  set -- $(ls -ln "$1" 2>/dev/null)
  b_n=${5:-0}
}

# poke DIR: wakes the pump. A FIFO opened for both never blocks the opener.
poke() {
  if [ -p "$1/wake" ]; then printf 'w\n' 1<>"$1/wake"; fi
}

# nap: a short sleep, a long one where sleep takes whole seconds only; adds it to b_napped (ms).
nap() {
  if sleep 0.03 2>/dev/null; then b_napped=$((b_napped + 32)); else
    sleep 1
    b_napped=$((b_napped + 1000))
  fi
}
