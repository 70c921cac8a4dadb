#!/usr/bin/env node
// The command line: verifies files offline, looks at what a service publishes, and calls it. Runs in Node only.
import module from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

// Compiling is most of a start. In the user's own folder, because what is there is run: the default is one that all users share. Node 22.0
// has none.
module.enableCompileCache?.(join(homedir(), '.cache', 'countersign'))
const { main } = await import('./commands/main.ts')

process.exitCode = await main(process.argv.slice(2))
