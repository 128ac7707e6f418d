# shellcheck shell=sh
# shellcheck disable=SC2154
# Says what is known of an attempt. Payload: run, attempt.
ready
IFS= read -r b_run && IFS= read -r b_attempt || exit 1
b_D=$b_B/runs/$b_run/$b_attempt
boot
settle
case $b_state in gone) poke "$b_D" ;; esac
tell
say end
