// Prints the settings of the running processes: npm run cli -- config --running.
import type { Database } from '../../db/pool.ts'
import { differingSettings, listProcesses } from '../presence.ts'
import { type CommandCall, printable, printJson, table, utc } from './command.ts'

/** Prints the settings of the living processes. Returns 1 when no process is alive. */
export async function printRunningSettings(db: Database, { json }: Pick<CommandCall, 'json'>): Promise<number> {
  const processes = (await listProcesses(db)).filter(({ alive }) => alive)
  const differing = differingSettings(processes)
  if (json) printJson({ processes, differing })
  else {
    const numbered = processes.map((one, index) => ({ ...one, name: `${one.kind} ${index + 1}` }))
    console.log(
      numbered.length === 0
        ? 'no process is alive'
        : table(
            ['process', 'host', 'pid', 'started'],
            numbered.map(({ name, host, pid, started_at }) => [name, host, pid, utc(started_at)]),
          ),
    )
    const names = Object.keys(Object.assign({}, ...processes.map(({ settings }) => settings)))
    for (const name of names) {
      const values = differing.find((one) => one.name === name)?.values
      if (!values) console.log(printable(`${name}=${processes[0]?.settings[name] ?? ''}`))
      else
        for (const [index, { value }] of values.entries())
          console.log(printable(`${name}=${value}    only ${numbered[index]?.name}`))
    }
  }
  return processes.length === 0 ? 1 : 0
}
