// Runs before the commands that a newcomer tries first. An old Node, or one without the packages, would answer with a stack trace
// about file extensions; this says in one sentence what to do. Plain JavaScript of long ago, because any Node may run it.
'use strict'
const { existsSync } = require('node:fs')
const { join } = require('node:path')

const NEEDED = 24

function problem() {
  const isInstalled = existsSync(join(__dirname, '../node_modules/zod'))
  if (!isInstalled) return 'The packages are not installed yet: run `npm install` first. It also brings the right Node.'
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
