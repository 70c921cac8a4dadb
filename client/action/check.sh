#!/usr/bin/env bash
# Checks each report of the action and fails at the end if one of them has a failed citation. Needs the client from install.sh, the
# variables of action.yml, and COUNTERSIGN_SERVICE, COUNTERSIGN_KEY and, to buy verdicts, COUNTERSIGN_WALLET.
set -uo pipefail

folder="$RUNNER_TEMP/countersign-client"
if [ -f "$folder/client/cli.ts" ]; then
  countersign=(node "$folder/client/cli.ts")
else
  countersign=("$folder/node_modules/.bin/countersign")
fi
mkdir -p "$SARIF"
cache="$RUNNER_TEMP/countersign-cache"
options=()
if [ "$CACHE" = true ]; then
  mkdir -p "$cache"
  options+=(--cache "$cache/answers.json")
fi
if [ "$VERIFY" = true ]; then
  # One budget for all reports of this run, and none of what earlier runs have spent.
  options+=(--verify --yes --budget "$BUDGET" --budget-file "$RUNNER_TEMP/countersign-budget.jsonl" --verdicts "$cache/verdicts")
fi

failed=0
worst=0
number=0
while IFS= read -r report; do
  [ -n "$report" ] || continue
  number=$((number + 1))
  "${countersign[@]}" check "$report" --format sarif --output "$SARIF/$number.sarif" \
    --summary "${GITHUB_STEP_SUMMARY:-/dev/null}" "${options[@]}"
  status=$?
  [ "$status" -eq 0 ] || failed=$((failed + 1))
  [ "$status" -le "$worst" ] || worst=$status
done <<< "$REPORTS"

{ echo "sarif=$SARIF"; echo "failed=$failed"; } >> "${GITHUB_OUTPUT:-/dev/null}"
if [ "$number" -eq 0 ]; then
  echo 'The input report names no file.' >&2
  exit 2
fi
exit "$worst"
