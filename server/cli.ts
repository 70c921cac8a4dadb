// Starts an operator's command: npm run cli -- <command>.
import './compile-cache.ts'

const { main } = await import('./commands.ts')

// When the reader closes the pipe, as `head` does, the output ends; that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
process.exitCode = await main(process.argv.slice(2))
