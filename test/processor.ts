// How much time of the processor this process and its programs have taken: for `--slowest`.
import { readdirSync, readFileSync } from 'node:fs'

/** Milliseconds of processor time. */
export interface Processor {
  /** Of this process. */
  own: number
  /** Of the programs that it started, and of theirs, such as a browser: those that have ended, and those that run. 0 where there is no /proc. */
  ended: number
  running: number
}

export function readProcessor(): Processor {
  const { user, system } = process.cpuUsage()
  const running = new Map(readRunning().map((one) => [one.pid, one]))
  const isOurs = (parent: number): boolean => {
    const found = running.get(parent)
    return parent === process.pid || (found !== undefined && isOurs(found.parent))
  }
  const ours = [...running.values()].filter(({ parent }) => isOurs(parent))
  return {
    own: (user + system) / 1000,
    ended: running.get(process.pid)?.ended ?? 0,
    running: ours.reduce((sum, { own, ended }) => sum + own + ended, 0),
  }
}

interface Running {
  pid: number
  parent: number
  /** Milliseconds of its own, and of those of its children that have ended. */
  own: number
  ended: number
}

function readRunning(): Running[] {
  let names: string[] = []
  try {
    names = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    // Another system than Linux.
  }
  return names.flatMap((name) => {
    let stat = ''
    try {
      stat = readFileSync(`/proc/${name}/stat`, 'utf8')
    } catch {
      // It has ended since the list was read.
      return []
    }
    // Behind the name of the program, which may have spaces. Times are in hundredths of a second.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const time = (n: number) => Number(fields[n]) * 10
    return [{ pid: Number(name), parent: Number(fields[1]), own: time(11) + time(12), ended: time(13) + time(14) }]
  })
}
