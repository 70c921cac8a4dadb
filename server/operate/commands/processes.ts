// Lists the processes, drains them and lets them take jobs again: npm run cli -- processes ....
import type { Database } from '../../db/pool.ts'
import { ALL, askDrain } from '../drain.ts'
import { listProcesses, processState } from '../presence.ts'
import { type CommandCall, duration, type OperatorCommand, printJson, table, utc } from './command.ts'

export const processCommands: Record<string, OperatorCommand> = {
  'processes list': {
    about: 'List the processes of the last ten minutes, with the ids for `processes drain`. Exit 1 when none is alive.',
    async run(db, _config, { json }) {
      const processes = await listProcesses(db)
      if (json) printJson(processes.map(({ settings: _, ...rest }) => rest))
      else
        console.log(
          processes.length === 0
            ? 'no process has reported'
            : table(
                ['process', 'id', 'host', 'pid', 'started', 'last beat', 'state'],
                processes.map((one) => [
                  one.kind,
                  one.id.slice(0, 8),
                  one.host,
                  one.pid,
                  utc(one.started_at),
                  `${duration(one.silent_seconds)} ago`,
                  processState(one),
                ]),
              ),
        )
      return processes.some(({ alive }) => alive) ? 0 : 1
    },
  },
  'processes drain': {
    takes: ['id|all'],
    about:
      'Ask a worker process to take no new jobs and to finish or hand back those it has. It keeps running, and ' +
      '`processes resume` undoes it. Asks for confirmation, except with --yes.',
    run: (db, _config, call) => ask(db, call, true),
  },
  'processes resume': {
    takes: ['id|all'],
    about: 'Let a drained process take jobs again.',
    run: (db, _config, call) => ask(db, call, false),
  },
}

async function ask(db: Database, { args: [subject = ''], json, confirm }: CommandCall, drains: boolean) {
  const question =
    `Drain ${subject === ALL ? 'all processes that take jobs' : `process ${subject}`}? While no process takes jobs, nothing is ` +
    'sold, no alert is delivered, and no deadline of a watchdog is checked.'
  if (drains && !(await confirm(question))) {
    console.error('Nothing was changed.')
    return 2
  }
  const outcome = await askDrain(db, subject, drains)
  if (json) printJson({ process: subject, outcome })
  else if (outcome !== 'not_found')
    console.log(
      drains
        ? 'asked to drain; `processes list` shows when it is done, within half a minute'
        : 'asked to take jobs again, which it does within some seconds',
    )
  if (outcome !== 'not_found') return 0
  console.error('No living process that takes jobs has this id. `processes list` shows them.')
  return 1
}
