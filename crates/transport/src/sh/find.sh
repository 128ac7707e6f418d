# shellcheck shell=sh
# shellcheck disable=SC2154
# Finds an agent's program and the PATH a terminal would have. Payload: an explicit path or nothing,
# the program's name, the time limit for the user's shell in ms.
ready
IFS= read -r b_l && IFS= read -r b_name && IFS= read -r b_limit || exit 1
plain "$b_name"
b_name=$b_V
plain "$b_l"
b_explicit=$b_V
if [ -n "$b_explicit" ]; then
  expand "$b_explicit"
  b_explicit=$b_V
fi
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }
runnable() { [ -f "$1" ] && [ -x "$1" ]; }

# capture: sets b_V to the PATH of a login and interactive shell, or to nothing. Such a shell may
# print anything, never end, or ignore TERM; so its words are taken between two markers from a file,
# and after the limit its whole group is killed.
capture() {
  b_V=
  case ${SHELL##*/} in '' | csh | tcsh | nologin | false) return ;; esac
  b_dir=${TMPDIR:-/tmp}/bursar.$b_M
  mkdir -m 700 "$b_dir" 2>/dev/null || return
  b_detach=$(command -v setsid)
  if [ -z "$b_detach" ] && [ -n "$(command -v perl)" ]; then b_detach="perl -MPOSIX -e POSIX::setsid();exec@ARGV --"; fi
  # shellcheck disable=SC2086,SC2016 # words; for the other shell
  BURSAR_RESOLVING_ENVIRONMENT=1 BURSAR_MARK=$b_M $b_detach "$SHELL" -lic \
    '/bin/sh -c '\''printf "\n%s(%s)%s\n" "$BURSAR_MARK" "$PATH" "$BURSAR_MARK"'\''' \
    </dev/null >"$b_dir/out" 2>/dev/null &
  b_c=$!
  b_napped=0
  while kill -0 $b_c 2>/dev/null && [ $b_napped -lt "$b_limit" ]; do
    grep -q ")$b_M" "$b_dir/out" 2>/dev/null && break
    nap
  done
  kill -9 -$b_c 2>/dev/null || kill -9 $b_c 2>/dev/null
  wait $b_c 2>/dev/null
  b_V=$(cat "$b_dir/out")
  rm -rf "$b_dir"
  case $b_V in
    *"$b_M("*")$b_M"*) b_V=${b_V##*"$b_M("}; b_V=${b_V%%")$b_M"*} ;;
    *) b_V= ;;
  esac
}

# search PATH: looks for b_name; sets b_found, and says each place.
search() {
  b_found='' IFS=:
  set -f
  for b_d in $1; do
    unset IFS
    case $b_d in /*) ;; *) continue ;; esac
    say place "$(hex "$b_d")"
    if runnable "$b_d/$b_name"; then b_found=$b_d/$b_name; break; fi
  done
  set +f
  unset IFS
}

capture
b_captured=$b_V b_found=
if [ -n "$b_explicit" ]; then
  say place "$(hex "$b_explicit")"
  if runnable "$b_explicit"; then b_found=$b_explicit; fi
else
  search "${b_captured:-$PATH}"
  if [ -z "$b_found" ]; then
    # shellcheck disable=SC2012 # the newest that has it
    b_nvm=$(ls -td "$HOME"/.nvm/versions/node/*/bin 2>/dev/null | while IFS= read -r b_d; do
      if runnable "$b_d/$b_name"; then
        printf %s "$b_d"
        break
      fi
    done)
    search "$HOME/.local/bin:$HOME/.claude/local:$HOME/.npm-global/bin:${b_nvm:-$HOME/.nvm}:$HOME/.volta/bin:$HOME/.bun/bin:/opt/homebrew/bin:/usr/local/bin:/home/linuxbrew/.linuxbrew/bin"
  fi
fi
b_path=${b_captured:-$PATH}
if [ -n "$b_found" ]; then
  # A `#!/usr/bin/env node` program needs its neighbours.
  case ":$b_path:" in *":${b_found%/*}:"*) ;; *) b_path=$b_path:${b_found%/*} ;; esac
  say found "$(hex "$b_found")" "$(hex "$b_path")" "$(hex "$HOME")"
fi
say end
