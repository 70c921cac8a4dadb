// Runs before the commands that a new user tries first. An old Node, or a missing installation, would cause a stack trace
// about file extensions; this file prints one sentence that says what to do. It uses only old JavaScript syntax, because
// any version of Node may run it.
'use strict'
const { existsSync } = require('node:fs')
const { join } = require('node:path')

const NEEDED = 24

function problem() {
  const isInstalled = existsSync(join(__dirname, '../node_modules/zod'))
  if (!isInstalled)
    return 'The packages are not installed yet: run `npm install` first. It also installs the right Node.'
  if (Number.parseInt(process.versions.node, 10) < NEEDED)
    return (
      `Node ${NEEDED} or newer is needed, and this is ${process.versions.node}. \`npm install\` without --omit=optional brings it; ` +
      'else install it.'
    )
  return null
}

const said = problem()
if (said) {
  console.error(said)
  process.exit(1)
}
