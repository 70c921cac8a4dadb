#!/usr/bin/env node
// The command line: verifies files offline, looks at what a service publishes, and calls it. Runs in Node only.
import module from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

// Node's compile cache, because compilation takes most of the time of a start. It is in the user's own folder, because Node
// runs its contents and all users share the default folder. Node 20 has no such cache.
module.enableCompileCache?.(join(homedir(), '.cache', 'countersign'))
const { main } = await import('./commands/main.ts')
const { INTERRUPTED } = await import('./commands/signals.ts')

const status = await main(process.argv.slice(2))
process.exitCode = status
// While Node puts its parts away, a further signal kills the process as if none had been heard. After `exit` it does not.
if (status === INTERRUPTED) process.stdout.write('', () => process.exit())
// The command is over: what a package still waits for, such as the answer of a node, must not keep the process. An unreferenced
// timer does not keep it either.
setTimeout(() => process.exit(), 1000).unref()
