# shellcheck shell=bash disable=SC2034
# Sourced by ./check and ./quickstart: steps that say what they do and how long it took, and the build.
#
# Wants: ROOT (the clone), LOGS (where logs go), NAME (the first word of each step). Keeps: PASSED, FAILED, and of the last step COUNTS and
# what was SHOWN below its line.

COMPILER=(clang-16 lld-16 ccache meson ninja-build pkg-config python3 python3-venv python3-yaml ca-certificates)
LIBRARIES=(libboost1.81-dev libssl-dev rapidjson-dev libyaml-cpp-dev libfmt-dev libexpected-dev libre2-dev zlib1g-dev prometheus-cpp-dev
  libcli11-dev libsqlite3-dev catch2)

# Clones share one compiler cache: paths below the clone are made relative, so they hit each other's entries. The headers of a compilation
# are read from the compiler's list of headers, so nothing is preprocessed twice.
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C.UTF-8

PASSED=0 FAILED=0 COUNTS='' SHOWN=''

# A user cannot write files that root has made in this clone, and many programs stop at a space in a path.
usable() {
  local made
  case $ROOT in *[[:space:]]*) echo "$0: the path of the clone has a space: $ROOT; move it" >&2; return 1 ;; esac
  for made in "$ROOT" "$ROOT/.cache" "$LOGS" "$ROOT/build" "$ROOT/build/build.ninja"; do
    [ ! -e "$made" ] || [ -w "$made" ] || {
      echo "$0: $made belongs to $(stat -c %U "$made"); run as that user, or give it to yourself: sudo chown -R $(id -un) $ROOT" >&2
      return 1
    }
  done
}
usable || exit 1
mkdir -p "$LOGS" || exit 1

# log_name TITLE prints the name, without its ending, of the step's files in LOGS.
log_name() { tr -cs 'a-zA-Z0-9\n' - <<< "$NAME-$1"; }

show() { [ -z "$1" ] || printf '%s\n' "$1" '' | sed 's/^/             /'; }

# count_step TITLE TOOK COUNTS SHOWN shows a step that was not run, because it passed before.
count_step() {
  PASSED=$((PASSED + $(cut -d' ' -f1 <<< "${3:-0}")))
  printf '%-12s %-46s %-6s %7s  %s\n' "$NAME" "$1" ok "$2" "${3%, 0 failed}"
  show "$4"
}

# step TITLE COMMAND... runs a command with its output in a log. A last line `N passed, N failed` in it is counted;
# a failure without such a line counts as one; of a failed step the lines `FAIL ...` with those behind them and the end are shown. The lines behind `open:` or `figures:`, up to an empty line, are shown.
# Answers the command's status.
step() {
  local title=$1 log began took result=0 shown
  shift
  log=$LOGS/$(log_name "$title").log
  printf '%-12s %-46s ' "$NAME" "$title"
  began=$SECONDS
  "$@" > "$log" 2>&1 < /dev/null || result=$?
  took=$((SECONDS - began))
  COUNTS=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  if [ -n "$COUNTS" ]; then
    PASSED=$((PASSED + $(cut -d' ' -f1 <<< "$COUNTS")))
    FAILED=$((FAILED + $(cut -d' ' -f3 <<< "$COUNTS")))
    case $COUNTS in *' 0 failed') [ $result = 0 ] || FAILED=$((FAILED + 1)) ;; esac
  elif [ $result != 0 ]; then
    FAILED=$((FAILED + 1))
  fi
  [ $result = 0 ] && shown=ok || shown=FAILED
  printf '%-6s %5d s  %s\n' "$shown" "$took" "${COUNTS%, 0 failed}"
  SHOWN=
  if [ $result = 0 ]; then
    SHOWN=$(sed -n '/^open:\|^figures:/,/^$/p' "$log")
    show "$SHOWN"
  else
    { grep -E -A 15 '^FAIL ' "$log" | head -n 60 | cut -c1-1500; tail -n 30 "$log" | cut -c1-300; } | sed 's/^/    | /'
    printf '    the whole log: %s\n' "${log#"$ROOT"/}"
  fi
  return $result
}

# configure DIRECTORY COMPILER OPTION... A directory of other options, or one whose configuration was interrupted, is made again.
configure() {
  local directory=$1 compiler=$2 linker=()
  local configured=$directory/configured as="${*:2}"
  shift 2
  [ "$(cat "$configured" 2> /dev/null)" != "$as" ] || return 0
  case $compiler in clang*) linker=(CXX_LD=lld) ;; esac
  [ ! -e "$directory" ] || echo "$directory is made again: it was configured with other options, or not to the end"
  rm -rf "$directory"
  env CXX="ccache $compiler" "${linker[@]}" meson setup --wrap-mode=nodownload "$@" "$directory" && echo "$as" > "$configured"
}

# build_trainer [TARGET...] makes the targets (default: all) of build/, with clang++-16 and for speed. Functions and lines are debug
# information enough for a stack; with all of it the build takes a sixth longer.
build_trainer() {
  configure build clang++-16 -Doptimization=2 -Ddebug=false -Dcpp_args=-g1 && ninja -C build "$@"
}
