# SPDX-License-Identifier: Apache-2.0
# bash: what a word of shuntctl's may be, as the running daemon says. Words are taken from the line,
# since bash splits them at `=` and `:`.
_shuntctl() {
  local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} last cut word
  local -a words options=()
  read -ra words <<<"$line"
  [[ $line == *[[:blank:]] ]] && words+=("")
  words=("${words[@]:1}")
  while [[ ${#words[@]} -gt 1 && ${words[0]} == -* ]]; do
    options+=("${words[0]}")
    if [[ ${words[0]} == -s || ${words[0]} == --socket ]]; then
      [[ ${#words[@]} -gt 2 ]] || return
      options+=("${words[1]}")
      words=("${words[@]:1}")
    fi
    words=("${words[@]:1}")
  done
  last=${words[-1]}
  # What stands before the part that bash replaces.
  [[ $current == = || $current == : ]] && current=
  cut=${last%"$current"}
  if [[ $last == -* && ${#words[@]} -eq 1 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "--socket --json --human --help" -- "$last")
    return
  fi
  COMPREPLY=()
  while read -r word; do
    # Names come from xDS servers: what the shell would run or split is quoted.
    printf -v word '%q' "${word#"$cut"}"
    COMPREPLY+=("$word")
  done < <("${COMP_WORDS[0]}" "${options[@]}" complete "${words[@]}" 2>/dev/null)
  if [[ ${#words[@]} -eq 1 && top == "$last"* ]]; then
    COMPREPLY+=(top)
  fi
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
    compopt -o nospace
  fi
}
complete -F _shuntctl shuntctl
