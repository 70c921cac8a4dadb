// The independent verifiers, test/auditor.py of exports and test/package_auditor.py of evidence packages: Python's standard library and the openssl command, and nothing of the service.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const SCRIPT = join(import.meta.dirname, 'auditor.py')
const OF_PACKAGES = join(import.meta.dirname, 'package_auditor.py')

async function run(command: string, ...args: string[]) {
  const child = spawn(command, args)
  child.stdin.end()
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}

/** The output of the program, or the reason why it does not run. */
const trying = async (program: string, ...args: string[]) =>
  run(program, ...args).then(
    ({ code, stdout }) => ({ stdout, why: code !== 0 && `${program} ${args[0]} exits ${code}` }),
    () => ({ stdout: '', why: `no ${program} on this machine` }),
  )

// Called by its own path: `python3` may be a script that searches for the right version, which takes longer than the
// program.
const python = await trying('python3', '-c', 'import sys; print(sys.executable)')
const openssl = await trying('openssl', 'version')

/** For the option `skip` of a test: why the verifier does not run, or false. */
export const withoutAuditor: string | false = python.why || openssl.why

/** Runs it with these arguments. */
export const audit = (...args: string[]) => run(python.stdout.trim(), SCRIPT, ...args)

/** The same for an evidence package. */
export const auditPackage = (...args: string[]) => run(python.stdout.trim(), OF_PACKAGES, ...args)
