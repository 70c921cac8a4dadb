// Starts an operator's command: npm run cli -- <command>.
import './compile-cache.ts'

const { main } = await import('./commands.ts')

// A pipe that is closed, as by `head`, ends the output and is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
process.exitCode = await main(process.argv.slice(2))
