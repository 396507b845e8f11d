# bash completion of espalier and of the programs beside it, from their help texts.

# The commands of "$@", and its options: the names, then the value as the help shows it.
_espalier_commands() {
  "$@" --help 2>/dev/null | awk 'tolower($0) ~ /^subcommands:/ { on = 1; next } /^$/ { on = 0 } on && /^  [a-z]/ { print $1 }'
}
_espalier_options() {
  "$@" --help 2>/dev/null | awk '/^ +-/ {
    gsub(",", " ")
    for (i = 1; $i ~ /^-/; ++i) printf "%s ", $i
    value = $i
    sub(/[=[].*/, "", value)
    print value
  }'
}

# The words that may follow option $1; none: files may.
_espalier_values() {
  local i collective=
  case $1 in
    --collective) "${COMP_WORDS[0]}" list | awk '{ print $1 }' | sort -u ;;
    --algorithm)
      for ((i = 1; i + 1 < ${#COMP_WORDS[@]}; ++i)); do
        [ "${COMP_WORDS[i]}" = --collective ] || continue
        collective=${COMP_WORDS[i + 1]}
        [ "$collective" != = ] || collective=${COMP_WORDS[i + 2]-}
      done
      "${COMP_WORDS[0]}" list | awk -v of="$collective" 'BEGIN { print "auto" } of == "" || $1 == of { print $2 }'
      ;;
    --embedding) "${COMP_WORDS[0]}" list --embeddings | awk 'BEGIN { print "none snake z-order" } { print $1 }' ;;
    --op) echo sum product min max and or xor affine ;;
    --type) echo i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64 ;;
    --topology | --candidates)
      echo complete: mesh: torus: ring: hypercube: hyperx: dragonfly: crossbar: hosts: fattree: file:
      ;;
    --provider) echo tcp mem ;;
  esac 2>/dev/null
}

_espalier() {
  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command=("${COMP_WORDS[0]}")
  local i first='' options value='' words=''
  COMPREPLY=()
  # Readline makes words of their own from = and : inside of words.
  if [ "$word" = = ]; then
    word=''
  elif [ "$option" = = ] && [ "$COMP_CWORD" -ge 2 ]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [ "$word" = : ] || [ "$option" = : ]; then
    # The rest of a topology; only that of file:PATH can be completed.
    first=$option
    [ "$option" != : ] || first=${COMP_WORDS[COMP_CWORD - 2]}
    [ "$word" != : ] || word=''
    [ "$first" != file ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    _espalier_commands "${command[@]}" | grep -qxF -e "${COMP_WORDS[i]}" || break
    command+=("${COMP_WORDS[i]}")
  done
  options=$(_espalier_options "${command[@]}")
  [ "${option#-}" = "$option" ] || value=$(awk -v name="$option" '{ for (i = 1; i < NF; ++i) if ($i == name) print $NF }' <<<"$options")
  case $value in
    NUMBER) return ;;
    TEXT) [ "${command[1]-} $option" = 'cables --topology' ] || words=$(_espalier_values "$option") ;;  # which it writes
    *'|'*) words=${value//|/ } ;;
    *) # no option that takes a value
      case $word in
        -*) words=$(grep -oE -- '-[-a-z]+' <<<"$options") ;;
        *) words=$(_espalier_commands "${command[@]}") ;;
      esac
      ;;
  esac
  if [ -z "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  fi
  # Values between commas: the last one is completed.
  case $word in *,*) first=${word%,*}, ;; esac
  mapfile -t COMPREPLY < <(compgen -P "$first" -W "$words" -- "${word##*,}")
  case "${COMPREPLY[*]}" in *:) compopt -o nospace 2>/dev/null ;; esac
}

# The options of the other programs; otherwise files.
_espalier_program() {
  local word=${COMP_WORDS[COMP_CWORD]}
  case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | grep -o -- '--[a-z][a-z-]*' | sort -u)" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
  esac
}

complete -o filenames -F _espalier espalier
complete -o filenames -F _espalier_program espalier-node espalier-gateway espalier-bench
