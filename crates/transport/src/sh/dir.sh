# shellcheck shell=sh
# shellcheck disable=SC2154
# Looks at a directory. Payload: its path.
ready
IFS= read -r b_l || exit 1
plain "$b_l"
expand "$b_V"
if [ ! -e "$b_V" ] && [ ! -h "$b_V" ]; then say dir missing
elif [ ! -d "$b_V" ]; then say dir other
elif cd "$b_V" 2>/dev/null; then say dir ok "$(pwd | od -An -v -tx1 | tr -d ' \n')"
else say dir closed; fi
say end
