# shellcheck shell=sh
# shellcheck disable=SC2154
# Follows attempts. Payload: engine or `auto`, then one `run attempt offset` a line, `.`.
ready
IFS= read -r b_engine || exit 1
set --
b_n=0
while read -r b_run b_attempt b_at; do
  case $b_run in .) break ;; esac
  set -- "$@" "$b_n $b_run $b_attempt $b_at"
  b_n=$((b_n + 1))
done
case $b_engine in
  auto)
    if [ -n "$(command -v perl)" ]; then b_engine=perl
    elif [ -n "$(command -v python3)" ]; then b_engine=python3
    else b_engine="sh"; fi ;;
esac
case $b_engine in perl)
  exec perl -e 'BURSAR_PERL' "$b_M" "$b_B" "$@" ;;
python3)
  exec python3 -c 'BURSAR_PYTHON' "$b_M" "$b_B" "$@" ;;
esac
