// Lists dead jobs and lets them run again: npm run cli -- jobs ....

import { listDeadJobs, redrive } from '../jobs.ts'
import { countOption, type OperatorCommand, printJson, table, UsageError, utc } from './command.ts'

const MAX_ERROR = 100

export const jobCommands: Record<string, OperatorCommand> = {
  'jobs dead': {
    about: 'List jobs that used up their attempts. Exit 1 when there are any.',
    options: { limit: { value: 'N', about: 'longest list (50)' } },
    async run(db, _config, call) {
      const found = await listDeadJobs(db, countOption(call, 'limit', 50))
      if (call.json) printJson(found)
      else if (found.length === 0) console.log('none')
      else
        console.log(
          table(
            ['job', 'task', 'attempts', 'last tried', 'key', 'last error'],
            found.map(({ id, task, attempts, updated_at, key, last_error }) => [
              id,
              task,
              attempts,
              utc(updated_at),
              key,
              last_error?.slice(0, MAX_ERROR) ?? null,
            ]),
          ),
        )
      return found.length === 0 ? 0 : 1
    },
  },
  'jobs redrive': {
    takes: ['job|all'],
    about: 'Let a dead job, or all of them, run again with all their attempts.',
    async run(db, _config, { args: [which = ''], json }) {
      if (which !== 'all' && !/^\d{1,18}$/.test(which)) throw new UsageError('Give the number of a job, or `all`.')
      const count = await redrive(db, which === 'all' ? null : which)
      if (json) printJson({ redriven: count })
      else console.log(`${count} jobs run again`)
      if (which !== 'all' && count === 0) {
        console.error('There is no such dead job.')
        return 1
      }
      return 0
    },
  },
}
