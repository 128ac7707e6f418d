BURSAR_HOLDER
} | {
  while IFS= read -r b_l; do
    printf '%s %s\n' "$b_M" "$b_l"
    case $b_l in end) break ;; esac
  done
}
