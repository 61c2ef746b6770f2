#include "runtimes/plugins/code/watch_script.hh"

namespace trainer::pipeline {

// A signal ends the command, and this with it: it has the grace period of the pod. Files have no
// times in the tar of the code, by which Python would know its compiled files, so it writes none.
// `wait` returns early after a signal, hence the loop behind it.
std::string_view watch_script() {
  return R"sh(cd "$0" || exit 1
state=.trainer-watch
mkdir -p "$state" && : >>"$state/round" || exit 1
rm -f "$state/hold"
export PYTHONDONTWRITEBYTECODE="${PYTHONDONTWRITEBYTECODE-1}"
child=
ending=
finish() { ending=yes; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null; }
trap finish TERM INT
round() { now=; read -r now <"$state/round" || :; }
round
while :; do
  seen=$now
  env TRAINER_CODE_ROUND="${seen:-0}" "$@" &
  child=$!
  [ ! -e "$state/hold" ] || kill -KILL "$child" 2>/dev/null
  wait "$child" 2>/dev/null
  code=$?
  while kill -0 "$child" 2>/dev/null; do wait "$child" 2>/dev/null; code=$?; done
  child=
  [ -z "$ending" ] || exit "$code"
  round
  if [ ! -e "$state/hold" ] && [ "$now" = "$seen" ]; then
    [ "$code" != 0 ] || exit 0
    echo "-- trainer: the command ended with exit code $code; it waits for an edit of the code" >&2
  fi
  polls=9000
  while [ -e "$state/hold" ] || [ "$now" = "$seen" ]; do
    [ -z "$ending" ] && [ "$polls" -gt 0 ] || exit "$code"
    polls=$((polls - 1))
    sleep 0.2 || sleep 1
    round
  done
done
)sh";
}

}  // namespace trainer::pipeline
