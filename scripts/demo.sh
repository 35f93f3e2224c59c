#!/usr/bin/env bash
# Set-up, then the main job on a worked example: a paper and its repository become validated, masked tasks.
#
# Usage: bash scripts/demo.sh [EXAMPLE ...]        (default: the first one; `all` for all)
#
# Writes into expbench-demo/ (EXPBENCH_DEMO_DIR for another folder). Run again, it goes on where it stopped.
set -euo pipefail
# shellcheck source=scripts/lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

bash "$ROOT/scripts/setup.sh"

DEMO="${EXPBENCH_DEMO_DIR:-$ROOT/expbench-demo}"
EXPBENCH="$VENV/bin/expbench"
mkdir -p -- "$DEMO"

say "expbench examples $DEMO/examples"
listing="$("$EXPBENCH" examples "$DEMO/examples" --json)"
# One line an example: name, paper, repository, separated by tabs.
examples="$("$VENV/bin/python" -c '
import json, sys
for item in json.load(sys.stdin):
    print(item["name"], item["paper"], item["repository"], sep="\t")' <<<"$listing")"
names="$(cut -f1 <<<"$examples" | tr '\n' ' ')"
[ -n "$examples" ] || fail "expbench came without worked examples: this clone is not complete"

case "${1:-}" in
  "") chosen="$(head -n 1 <<<"$examples")" ;;
  all) chosen="$examples" ;;
  *)
    chosen=""
    for name in "$@"; do
      line="$(grep -F -- "$name	" <<<"$examples")" || fail "there is no example '$name'; there are: $names"
      chosen+="$line"$'\n'
    done
    ;;
esac

status=0
done_names=()
while IFS=$'\t' read -r name paper repository; do
  [ -n "$name" ] || continue
  say "expbench curate $paper $repository --out $DEMO/$name"
  "$EXPBENCH" curate "$paper" "$repository" --out "$DEMO/$name" --resume </dev/null || status=$?
  [ "$status" -ne 130 ] || exit 130 # Ctrl-C ends the demo, not only this example
  done_names+=("$name")
done <<<"$chosen"

say "Where to look"
for name in "${done_names[@]}"; do
  note "$DEMO/$name/index.html   each task with its evidence, code, runs and leak report (open it in a browser)"
  note "$DEMO/$name/tasks/       the same as files, one folder a task"
  note ".venv/bin/expbench show $DEMO/$name"
done
exit "$status"
