#!/usr/bin/env bash
# Installs the client and its dependencies for the action, into a new folder. Needs RUNNER_TEMP, and PACKAGE, VERIFY and CHECKOUT as in
# action.yml.
set -euo pipefail

folder="$RUNNER_TEMP/countersign-client"
mkdir -p "$folder"
cd "$folder"
echo '{"private": true, "type": "module"}' > package.json

# The parsers of reports and, to buy verdicts, the packages that sign payments.
peers=$(node -p "
  const { peerDependencies } = JSON.parse(fs.readFileSync(process.env.CHECKOUT + '/client/package.json'))
  const wanted = process.env.VERIFY === 'true' ? /mdast|micromark|parse5|x402|viem|@solana/ : /mdast|micromark|parse5/
  Object.entries(peerDependencies).filter(([name]) => wanted.test(name)).map((one) => one.join('@')).join(' ')
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
npm install --no-audit --no-fund --ignore-scripts --loglevel=error $client $peers
