#!/usr/bin/env bash
# Installs the client and its parsers for the action, into a folder of their own. Needs RUNNER_TEMP; PACKAGE and CHECKOUT as in
# action.yml.
set -euo pipefail

folder="$RUNNER_TEMP/countersign-client"
mkdir -p "$folder"
cd "$folder"
echo '{"private": true, "type": "module"}' > package.json

parsers=$(node -p "
  const { peerDependencies } = JSON.parse(fs.readFileSync(process.env.CHECKOUT + '/client/package.json'))
  Object.entries(peerDependencies).filter(([name]) => /mdast|micromark|parse5/.test(name)).map((one) => one.join('@')).join(' ')
")
if [ -n "${PACKAGE:-}" ]; then
  client="$PACKAGE"
else
  # Node runs the sources as they are, so the checkout needs no build: only its dependencies.
  client=$(node -p "
    const { dependencies } = JSON.parse(fs.readFileSync(process.env.CHECKOUT + '/client/package.json'))
    Object.entries(dependencies).map((one) => one.join('@')).join(' ')
  ")
  cp -r "$CHECKOUT/client" client
fi
# Word splitting is meant: each word is a package.
# shellcheck disable=SC2086
npm install --no-audit --no-fund --ignore-scripts --loglevel=error $client $parsers
