# shellcheck shell=sh
# Detaches the holder and passes its answer on. The holder reads the payload from fd 5.
#
# `setsid setsid`: the first makes a session, the second, being a group leader, forks and leaves.
# So nothing is started with `&`, which would leave SIGINT ignored in the agent for ever.
detach() {
  # shellcheck disable=SC2086 # words
  if [ -x /usr/bin/setsid ] || [ -n "$(command -v setsid)" ]; then
    $b_scope setsid setsid "$@"
  elif [ -n "$(command -v perl)" ]; then
    perl -MPOSIX -e 'POSIX::setsid(); fork and exit; POSIX::setsid(); exec @ARGV' -- "$@"
  else
    # A background process gets its stdin from /dev/null, so it is handed over by another number.
    { nohup "$@" <&4 4<&- & } 4<&0
  fi
}
unset BURSAR_RUN BURSAR_ATTEMPT
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
printf '\n%s ready\n' "$b_M"
# Where logind kills what a user leaves behind, setsid or not, a scope of the user's own manager is out of
# its reach. Asked only there, since it takes long.
b_scope=
if [ -d /run/systemd/system ] && grep -qs '^KillUserProcesses=yes' /etc/systemd/logind.conf \
  /etc/systemd/logind.conf.d/*.conf /usr/lib/systemd/logind.conf.d/*.conf; then
  if systemd-run --user --scope --quiet true </dev/null >/dev/null 2>&1; then
    b_scope='systemd-run --user --scope --quiet'
  else
    printf '%s logout\n' "$b_M"
  fi
fi
IFS= read -r b_run && IFS= read -r b_attempt || exit 1
{
  detach sh -s -- bursar-holder "$b_run" "$b_attempt" "$b_M" 3>&1 5<&0 >/dev/null 2>&1 <<'BURSAR_HOLDER'
