# shellcheck shell=bash
# Sourced by run and frameworks.

# run_files DIRECTORY FILE... -- [TEST...] runs these tests of each file, or all of them, and prints how many passed in all.
run_files() {
  local here=$1 files=() name file mine output good bad passed=0 failed=0
  shift
  while [ "$1" != -- ]; do files+=("$1"); shift; done
  shift
  for name; do
    (cd "$here" && grep -q "^ *def $name\b" "${files[@]}") || { echo "no test $name in ${files[*]}" >&2; return 2; }
  done
  for file in "${files[@]}"; do
    mine=$(for name; do grep -o "^ *def $name\b" "$here/$file" | sed 's/.*def //' || true; done)
    [ $# = 0 ] || [ -n "$mine" ] || continue
    echo "== $file"
    # shellcheck disable=SC2086  # a word each
    output=$("$here/$file" $mine 2>&1) || true
    echo "$output" | grep -vE '^[0-9]+ passed, [0-9]+ failed$' || true
    read -r good _ bad _ <<< "$(tail -n 1 <<< "$output")"
    if [[ "$good $bad" =~ ^[0-9]+\ [0-9]+$ ]]; then
      passed=$((passed + good)) failed=$((failed + bad))
    else
      failed=$((failed + 1))   # it ended before it could count
    fi
  done
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
