# shellcheck shell=sh
# shellcheck disable=SC2154
# The end of what the agent wrote to stderr. Payload: run, attempt, bytes at most.
ready
IFS= read -r b_run && IFS= read -r b_attempt && IFS= read -r b_max || exit 1
b_f=$b_B/runs/$b_run/$b_attempt/err
if [ -f "$b_f" ]; then
  say bytes "$(tail -c "$b_max" "$b_f" | od -An -v -tx1 | tr -d ' \n')"
fi
say end
