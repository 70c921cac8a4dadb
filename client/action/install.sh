#!/usr/bin/env bash
# Installs the client and its dependencies for the action, into a new folder. Needs RUNNER_TEMP, and PACKAGE, VERIFY and CHECKOUT as in
# action.yml. The dependencies have the versions and digests of the checkout's lock file, because the next step holds key and wallet.
set -euo pipefail

folder="$RUNNER_TEMP/countersign-client"
mkdir -p "$folder"
cd "$folder"
install=(npm install --no-audit --no-fund --ignore-scripts --loglevel=error)

if [ -n "${PACKAGE:-}" ]; then
  echo '{"private": true, "type": "module"}' > package.json
  # Word splitting is meant: each word is a package.
  # shellcheck disable=SC2086
  exec "${install[@]}" $PACKAGE
fi

# Node runs the sources as they are, so the checkout needs no build: only its dependencies, of which some only sign payments.
node -p "
  const { dependencies } = JSON.parse(fs.readFileSync(process.env.CHECKOUT + '/client/package.json'))
  const unused = process.env.VERIFY === 'true' ? /^$/ : /x402|viem|@solana/
  const used = Object.entries(dependencies).filter(([name]) => !unused.test(name))
  JSON.stringify({ private: true, type: 'module', dependencies: Object.fromEntries(used) })
" > package.json
cp -r "$CHECKOUT/client" client
cp "$CHECKOUT/package-lock.json" package-lock.json
"${install[@]}"
# npm takes what the lock file has and removes the rest from it. What it had to choose by itself is not trusted.
node -e "
  const read = (folder) => JSON.parse(fs.readFileSync(folder + '/package-lock.json')).packages
  const locked = read(process.env.CHECKOUT)
  const isLocked = ([name, { version, integrity }]) =>
    name === '' || (integrity && locked[name]?.version === version && locked[name]?.integrity === integrity)
  const others = Object.entries(read('.')).filter((one) => !isLocked(one)).map(([name]) => name)
  if (others.length === 0) process.exit(0)
  console.error('Not in the lock file of the action: ' + others.join(', '))
  process.exit(1)
"
