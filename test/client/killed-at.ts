// Loaded before a command line with --import: kills the process with SIGKILL at its n-th step (KILLED_AT). A step is a request, the
// arrival of its answer, or a change of a file; an appended line counts twice, and at the second time half of it is written. STEPS
// names a file to which a process that lives to its end writes how many steps it took.
import { writeFileSync } from 'node:fs'
import fs, { type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

const at = Number(process.env.KILLED_AT)
let taken = 0

function step(last: () => unknown = () => {}): void {
  if (++taken !== at) return
  last()
  process.kill(process.pid, 'SIGKILL')
  for (;;);
}

const ours = globalThis.fetch
globalThis.fetch = async (...args) => {
  step()
  const answer = await ours(...args)
  step()
  return answer
}

const probe = await fs.open(import.meta.filename)
const handles: FileHandle = Object.getPrototypeOf(probe)
await probe.close()
const { appendFile } = handles
handles.appendFile = async function (this: FileHandle, text, options) {
  step()
  // Through its descriptor, because the process must not live until a promise is settled.
  step(() => writeFileSync(this.fd, String(text).slice(0, String(text).length / 2)))
  return appendFile.call(this, text, options)
}
for (const name of ['writeFile', 'datasync', 'truncate', 'close'] as const) {
  const original = handles[name] as (...args: unknown[]) => Promise<void>
  handles[name] = async function (this: FileHandle, ...args: unknown[]) {
    step()
    return original.apply(this, args)
  } as never
}
for (const name of ['open', 'mkdir', 'rename', 'rm', 'link', 'writeFile'] as const) {
  const original = fs[name] as (...args: unknown[]) => Promise<unknown>
  Object.assign(fs, {
    [name]: async (...args: unknown[]) => {
      step()
      return original(...args)
    },
  })
}
syncBuiltinESMExports()
process.on('exit', () => process.env.STEPS && writeFileSync(process.env.STEPS, String(taken)))
