# shellcheck shell=sh
# Detaches the holder and passes its answer on. The holder reads the payload from fd 5.
#
# `setsid setsid`: the first makes a session, the second, being a group leader, forks and leaves.
# So nothing is started with `&`, which would leave SIGINT ignored in the agent for ever.
detach() {
  if [ -x /usr/bin/setsid ] || [ -n "$(command -v setsid)" ]; then
    setsid setsid "$@"
  elif [ -n "$(command -v perl)" ]; then
    perl -MPOSIX -e 'POSIX::setsid(); fork and exit; POSIX::setsid(); exec @ARGV' -- "$@"
  else
    nohup "$@" &
  fi
}
unset BURSAR_RUN BURSAR_ATTEMPT
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
printf '\n%s ready\n' "$b_M"
IFS= read -r b_run && IFS= read -r b_attempt || exit 1
{
  detach sh -s -- bursar-holder "$b_run" "$b_attempt" "$b_M" 3>&1 5<&0 >/dev/null 2>&1 <<'BURSAR_HOLDER'
