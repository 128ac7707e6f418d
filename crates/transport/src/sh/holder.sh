# shellcheck shell=sh
# The holder: starts one agent, keeps its input fed, writes down how it ended. It is started by
# start.sh in its own session with: $1 its name (for ps), $2 run, $3 attempt, $4 marker, fd 3 for
# the answer, fd 5 for the payload. Layout of the folder:
#   lock.N    -> pid:start:boot of a holder; the highest N counts, a dead one is followed by N+1
#   in/OFFSET -> d.END.TAG (bytes of the input from OFFSET to END), or `close`
#   stdin, wake  FIFOs: the agent's input, and what wakes the pump
#   out, err  what the agent printed    pid  who it is    fed  bytes given to it    exit  how it ended
b_R=$2 b_A=$3 b_M=$4
b_D=$b_B/runs/$b_R/$b_A
b_K=$b_D/in/none
b_umask=$(umask)
umask 077
trap : HUP INT TERM
# answer WORD...: one answer line. In a process of its own: the caller may be gone, and SIGPIPE must not
# end what becomes the agent, nor may it be ignored, which the agent would inherit.
answer() { (printf '%s\n' "$*" >&3); }
refuse() {
  [ ! -e "$b_K" ] || rm -f "$b_K"
  answer "$@"
  answer end
  exit 0
}
# broken WHAT MESSAGE: tells why the folder cannot be used.
broken() {
  case $2 in
    *'No space left'* | *'quota exceeded'*) refuse nospace "$2" ;;
    *'Read-only'* | *'ermission denied'* | *'Not a directory'*) refuse readonly "$2" ;;
    *) refuse broken "$1: $2" ;;
  esac
}

# 1. Read the whole payload before anything is claimed: a cut in the middle claims nothing.
#    The pieces of the environment stay in numbered variables until the agent is forked.
b_cwd='' b_path=$PATH b_session=- b_key=- b_size=0 b_close=0 b_envs=0 b_whole=
set --
while IFS= read -r b_l <&5; do
  b_v=${b_l#?}
  case $b_l in
    a*) plain "$b_v"; set -- "$@" "$b_V" ;;
    e*) b_envs=$((b_envs + 1)); eval "b_env_$b_envs=\$b_v"
      case $b_v in .PATH=* | !PATH=*) plain "$b_v"; b_path=${b_V#PATH=} ;; esac ;;
    c*) plain "$b_v"; b_cwd=$b_V ;;
    s*) b_session=$b_v ;;
    k*) b_key=$b_v ;;
    z*) b_size=$b_v ;;
    x*) b_close=$b_v ;;
    .) b_whole=1; break ;;
  esac
done
[ -n "$b_whole" ] && [ $# -gt 0 ] || exit 1

expand "$b_cwd"
b_cwd=$b_V
cd "$b_cwd" 2>/dev/null || refuse nodir
b_found=
case $1 in
  */*)
    [ -e "$1" ] || refuse noagent
    if [ -f "$1" ] && [ -x "$1" ]; then b_found=1; fi ;;
  *)
    b_seen='' IFS=:
    set -f
    for b_d in $b_path; do
      [ -f "${b_d:-.}/$1" ] && b_seen=1 && [ -x "${b_d:-.}/$1" ] && b_found=1 && break
    done
    set +f
    unset IFS
    [ -n "$b_seen" ] || refuse noagent ;;
esac
[ -n "$b_found" ] || refuse notexec
case $b_cwd in
  /*) ;;
  *) b_cwd=$(pwd; printf x)
    b_cwd=${b_cwd%?x} ;;
esac
cd / || exit 1

b_sessions=
case $b_session in -) ;; *) b_sessions=$b_B/sessions/$b_session ;; esac
b_keys=
case $b_key in -) ;; *) b_keys=$b_B/keys/$b_key ;; esac
[ -n "$b_B" ] || refuse readonly 'HOME is not set'
b_e=$(LC_ALL=C mkdir -p "$b_D/in" ${b_sessions:+"$b_sessions"} ${b_keys:+"$b_keys"} 2>&1) || broken mkdir "$b_e"
b_K=$b_D/in/d.$b_size.$b_M
if [ "$b_size" != 0 ]; then
  b_e=$(LC_ALL=C cat 2>&1 <&5 >"$b_K") || broken 'writing the input' "$b_e"
  size "$b_K"
  [ "$b_n" = "$b_size" ] || { rm -f "$b_K"; exit 1; }
fi
exec 5<&- </dev/null

boot
started $$
b_me=$$:$b_S:$b_BOOT b_ms=$b_S

# attached: another holder has this attempt; tells who the agent is, or was.
attached() {
  if agent "$b_D"; then refuse attached "$b_P" "$b_PS" "$b_PB"; fi
  if [ -e "$b_D/exit" ]; then refuse attached 0 - -; fi
}

# 2. Claim the attempt. A lock is never removed, so taking over a dead one cannot take a fresh one.
b_n=1 b_napped=0
until attached; ln -s "$b_me" "$b_D/lock.$b_n" 2>/dev/null; do
  owner "$b_D/lock.$b_n"
  [ -n "$b_T" ] || broken lock "$(LC_ALL=C ln -s "$b_me" "$b_D/lock.$b_n" 2>&1)"
  if alive "$b_O" "$b_OS" "$b_OB"; then
    [ $b_napped -lt 15000 ] || refuse broken "another start of this attempt hangs (process $b_O)"
    nap
  else
    b_n=$((b_n + 1))
  fi
done
attached
if [ $b_n -gt 1 ]; then rm -f "$b_D"/in/[0-9]* "$b_D/out" "$b_D/err" "$b_D/stdin" "$b_D/wake"; fi

# claim FOLDER WORD: one living agent a folder, else refuse. Entries name run, attempt and holder.
claim() {
  while :; do
    b_n=0
    for b_f in "$1"/*; do
      b_f=${b_f##*/}
      case $b_f in '' | *[!0-9]*) ;; *) if [ "$b_f" -gt "$b_n" ]; then b_n=$b_f; fi ;; esac
    done
    if [ "$b_n" -gt 0 ]; then
      owner "$1/$b_n"
      case $b_T in
        '') continue ;;
        "$b_R/$b_A/"*) ;;
        *)
          b_o=$b_O b_os=$b_OS b_ob=$b_OB b_who=${b_T%/*}
          agent "$b_B/runs/$b_who" || b_P=0
          if { [ "$b_P" != 0 ] && alive "$b_P" "$b_PS" "$b_PB"; } || alive "$b_o" "$b_os" "$b_ob"; then
            refuse "$2" "${b_who%/*}" "${b_who##*/}" "$b_P"
          fi ;;
      esac
    fi
    b_n=$((b_n + 1))
    if ln -s "$b_R/$b_A/$b_me" "$1/$b_n" 2>/dev/null; then
      return 0
    fi
    [ -h "$1/$b_n" ] || broken lock "$(LC_ALL=C ln -s "$b_R/$b_A/$b_me" "$1/$b_n" 2>&1)"
  done
}
[ -z "$b_sessions" ] || claim "$b_sessions" sessionbusy
[ -z "$b_keys" ] || claim "$b_keys" keybusy

# 3. The journal's first entries, the FIFOs, the pump.
if [ "$b_size" != 0 ]; then
  b_e=$(LC_ALL=C ln -s "d.$b_size.$b_M" "$b_D/in/0" 2>&1) || broken journal "$b_e"
fi
if [ "$b_close" = 1 ]; then
  b_e=$(LC_ALL=C ln -s close "$b_D/in/$b_size" 2>&1) || broken journal "$b_e"
fi
b_e=$(LC_ALL=C mkfifo "$b_D/stdin" "$b_D/wake" 2>&1) || broken mkfifo "$b_e"

# Opened for both first, so that no later open blocks.
# shellcheck disable=SC2094 # FIFOs
exec 9<>"$b_D/stdin" 8<>"$b_D/wake" 7<"$b_D/stdin" 6>"$b_D/stdin" 9<&-

# pump: copies the journal into the agent's input and blocks on `wake` between entries. It alone
# holds the write end, so the agent's input ends when the pump does. cat is waited for with `wait`,
# which a TERM cuts short: else a reader that never reads would keep the pump.
pump() {
  b_c=
  trap '[ -z "$b_c" ] || kill -9 "$b_c"; exit' TERM
  b_n=0
  while :; do
    while [ -h "$b_D/in/$b_n" ]; do
      b_e=$(ls -ln "$b_D/in/$b_n")
      b_e=${b_e##* -> }
      case $b_e in close) exit ;; esac
      cat "$b_D/in/$b_n" >&6 7<&- 8<&- </dev/null &
      b_c=$!
      wait "$b_c" || exit
      b_c='' b_e=${b_e#d.}
      b_n=${b_e%%.*}
      printf '%s\n' "$b_n" >"$b_D/fed"
    done
    read -r b_e <&8 || exit
    [ ! -e "$b_D/exit" ] || exit
    # Only a dead holder leaves this to the pump: without its agent it has no reason to stay.
    if agent "$b_D" && ! alive "$b_P" "$b_PS" "$b_PB"; then exit; fi
  done
}
(
  exec 3>&- 7<&-
  pump
) &
b_pump=$!
exec 6>&-

# 4. The agent, in the foreground: a background child would have SIGINT ignored for ever.
b_setsid=
for b_d in /usr/bin /bin /usr/local/bin; do
  if [ -x $b_d/setsid ]; then b_setsid=$b_d/setsid; break; fi
done
[ -n "$b_setsid" ] || b_setsid=$(command -v setsid)
b_perl=
[ -n "$b_setsid" ] || b_perl=$(command -v perl)
(
  # The process that becomes the agent writes down who it is: even if the holder is killed at this
  # very instant, the agent is known.
  if [ -n "$b_PROC" ]; then
    # /proc/self is whoever opens it: this subshell.
    read -r b_P b_L </proc/self/stat
    started self
  else
    b_P=$(exec sh -c 'echo $PPID')
    started "$b_P"
  fi
  if ! printf '%s %s %s %s %s .\n' "$b_P" "$b_S" "$b_BOOT" $$ "$b_ms" >"$b_D/pid"; then
    rm -f "$b_D/pid"
    refuse nospace 'the state directory cannot be written to'
  fi
  exec >>"$b_D/out" 2>>"$b_D/err" || exit 126
  answer started "$b_P" "$b_S" "$b_BOOT"
  answer end
  exec 3>&- 8<&-
  cd "$b_cwd" || exit 126
  umask "$b_umask"
  b_i=0
  export BURSAR_RUN="$b_R" BURSAR_ATTEMPT="$b_A"
  while [ "$b_i" -lt "$b_envs" ]; do
    b_i=$((b_i + 1))
    eval "b_l=\$b_env_$b_i"
    plain "$b_l"
    case ${b_V%%=*} in
      '' | [0-9]* | *[!A-Za-z0-9_]*) ;;
      *) export "${b_V?}" ;;
    esac
  done
  if [ -n "$b_setsid" ]; then
    exec "$b_setsid" "$@" <&7 7<&-
  elif [ -n "$b_perl" ]; then
    # shellcheck disable=SC2016 # for perl
    exec "$b_perl" -MPOSIX -e 'POSIX::setsid(); exec {$ARGV[0]} @ARGV; exit 127' -- "$@" <&7 7<&-
  else
    exec "$@" <&7 7<&-
  fi
)
b_rc=$?
if [ $b_rc -gt 256 ]; then b_rc=$((b_rc - 128)); fi

# 5. The record. What the agent's children write to `out` later is beyond the recorded length.
size "$b_D/out"
printf 'exit %s %s %s .\n' $b_rc "$b_n" "$(date +%s)" >"$b_D/exit.$b_M" && mv "$b_D/exit.$b_M" "$b_D/exit"
exec 7<&-
kill -TERM $b_pump 2>/dev/null
printf 'w\n' >&8
