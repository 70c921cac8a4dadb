// Starts an operator's command: npm run cli -- <command>.
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// Compiling is most of a start. Beside the packages, whose owner may change what is run in any case.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/countersign'))
const { main } = await import('./commands.ts')

// A pipe that is closed, as by `head`, ends the output and is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
process.exitCode = await main(process.argv.slice(2))
