# shellcheck shell=sh
# shellcheck disable=SC2154
# Finds the processes of a run: those that carry its marker in their environment, and those below a
# living agent, whatever their environment. Never the searcher, a holder or a pump: they have no
# marker. A process that cleared its environment and was left by its parent is not found.

# marked RUN: sets b_marked to the pids that carry the marker.
marked() {
  b_marked=
  if [ -z "$b_PROC" ]; then
    b_marked=$(ps axeww -o pid= -o command= 2>/dev/null |
      awk -v m="BURSAR_RUN=$1" '{ for (i = 2; i <= NF; i++) if ($i == m) { printf "%s ", $1; break } }')
    return
  fi
  if printf 'x\0' | grep -qz x 2>/dev/null; then
    b_list=$(grep -lsz "^BURSAR_RUN=$1\$" /proc/[0-9]*/environ 2>/dev/null)
  else
    b_list=
    # shellcheck disable=SC2013 # names without blanks
    for b_f in $(grep -lsF "BURSAR_RUN=$1" /proc/[0-9]*/environ 2>/dev/null); do
      if tr '\0' '\n' 2>/dev/null <"$b_f" | grep -qx "BURSAR_RUN=$1"; then b_list="$b_list $b_f"; fi
    done
  fi
  for b_f in $b_list; do
    b_f=${b_f#/proc/}
    b_marked="$b_marked ${b_f%/*}"
  done
}

# table: one line a process: pid, parent, start time; no zombies. Odd names do not confuse it.
table() {
  if [ -n "$b_PROC" ]; then
    cat /proc/[0-9]*/stat 2>/dev/null | awk '
      { l = l $0 }
      l !~ /\) [A-Za-z] -?[0-9]+ -?[0-9]+ .*[0-9] [0-9]/ { next }
      { p = l; sub(/ .*/, "", p); sub(/.*\) /, "", l); split(l, f, " "); l = ""
        if (f[1] != "Z" && f[1] != "X") print p, f[2], f[20] }'
  else
    LC_ALL=C ps ax -o pid=,ppid=,state= | awk '$3 !~ /^Z/ { print $1, $2, 0 }'
  fi
}

# processes RUN AGENTS HOLDERS: prints pid, parent, start time, is it an agent, is it below an agent,
# is it below a holder, for every process of the run. AGENTS and HOLDERS are lists of living pids.
processes() {
  marked "$1"
  table | awk -v me=$$ -v marked="$b_marked" -v agents="$2" -v holders="$3" '
    function set(text, into,   n, i, part) { n = split(text, part, " "); for (i = 1; i <= n; i++) into[part[i]] = 1 }
    BEGIN { set(marked, m); set(agents, a); set(holders, h) }
    { up[$1] = $2; start[$1] = $3 }
    END {
      for (p in up) {
        below = 0; held = 0; mine = (p == me); n = 0
        for (q = up[p]; (q in up) && q > 1 && n++ < 4096; q = up[q]) {
          if (q in a) below = 1
          if (q in h) held = 1
          if (q == me) mine = 1
        }
        if (mine || (p in h) || !((p in m) || (p in a) || below)) continue
        print p, up[p], start[p], (p in a) + 0, below, held
      }
    }'
}

# cast RUN: sets b_agents and b_holders to the living agents and holders of the run.
cast() {
  b_agents='' b_holders=''
  for b_dir in "$b_B/runs/$1"/*; do
    agent "$b_dir" || continue
    if alive "$b_P" "$b_PS" "$b_PB"; then b_agents="$b_agents $b_P"; fi
    if alive "$b_H" "$b_HS" "$b_PB"; then b_holders="$b_holders $b_H"; fi
  done
}

hex() { od -An -v -tx1 | tr -d ' \n'; }

# list RUN: answers one line a process: pid, parent, age in seconds, flags, command in hexadecimal.
list() {
  cast "$1"
  b_up=0 b_hz=100
  if [ -n "$b_PROC" ]; then
    read -r b_up b_e </proc/uptime
    b_hz=$(getconf CLK_TCK 2>/dev/null) || b_hz=100
  fi
  processes "$1" "$b_agents" "$b_holders" | while read -r b_p b_pp b_s b_a b_b b_h; do
    if [ -n "$b_PROC" ]; then
      b_cmd=$(head -c 4096 "/proc/$b_p/cmdline" 2>/dev/null | hex)
      [ -n "$b_cmd" ] || b_cmd=$(head -c 64 "/proc/$b_p/comm" 2>/dev/null | hex)
      b_age=$((${b_up%.*} - b_s / b_hz))
      # It ended while it was being looked at.
      [ -n "$b_cmd" ] || continue
    else
      b_cmd=$(ps -o command= -p "$b_p" 2>/dev/null | head -c 4096 | hex)
      b_age=-1
      [ -n "$b_cmd" ] || continue
    fi
    say proc "$b_p" "$b_pp" "$b_age" "$b_a" "$b_b" "$b_h" "$b_cmd"
  done
}
