// Starts an operator's command: npm run cli -- <command>.
import './compile-cache.cjs'

// Listens before the libraries do, because one of them throws what it hears. When the reader closes the pipe, as `head` does, the
// output ends; that is no error. 74 is EX_IOERR of sysexits.h: 1 would say that the service is not well.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  console.error(`cannot write standard output: ${error.message.replace(/^[A-Z]+: |, write$/g, '')}`)
  process.exit(74)
})
const { main } = await import('./commands.ts')

process.exitCode = await main(process.argv.slice(2))
