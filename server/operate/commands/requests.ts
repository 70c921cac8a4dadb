// Lists and shows requests, gives them new jobs and cancels them: npm run cli -- requests ....
import { z } from 'zod'
import { type State, states } from '../../verification/request.ts'
import { cancelAsOperator, listRequests, type RequestDetail, retryRequest, showRequest } from '../requests.ts'
import {
  type CommandCall,
  countOption,
  duration,
  type OperatorCommand,
  printable,
  printJson,
  table,
  textOption,
  UsageError,
  utc,
} from './command.ts'

const STUCK_SECONDS = 120

export const requestCommands: Record<string, OperatorCommand> = {
  'requests list': {
    about: 'List requests, the last changed first.',
    options: {
      state: { value: 'STATE', about: `one of ${states.join(', ')}` },
      code: { value: 'CODE', about: 'failed with this error code' },
      host: { value: 'HOST', about: 'whose source is on this host' },
      stuck: { about: `in progress and in their state for more than ${STUCK_SECONDS} s, the longest first` },
      limit: { value: 'N', about: 'longest list (20)' },
    },
    async run(db, _config, call) {
      const found = await listRequests(db, {
        ...(call.options.state !== undefined && { state: stateOf(call) }),
        code: textOption(call, 'code'),
        host: textOption(call, 'host'),
        ...(call.options.stuck && { stuckSeconds: STUCK_SECONDS }),
        limit: countOption(call, 'limit', 20),
      })
      if (call.json) printJson(found)
      else if (found.length === 0) console.log('no such requests')
      else
        console.log(
          table(
            ['request', 'state', 'since', 'job', 'host', 'code'],
            found.map(({ id, state, seconds, job, host, code }) => [id, state, duration(seconds), job, host, code]),
          ),
        )
      return 0
    },
  },
  'requests show': {
    takes: ['request-id'],
    about: 'Show one request with its job and its payments.',
    async run(db, _config, { args, json }) {
      const found = isId(args[0]) ? await showRequest(db, args[0]) : null
      if (!found) return refuse(NO_REQUEST)
      if (json) printJson(found)
      else console.log(render(found))
      return 0
    },
  },
  'requests retry': {
    takes: ['request-id'],
    about: 'Give a request in progress a new job, which runs at once.',
    async run(db, _config, { args, json }) {
      const outcome = isId(args[0]) ? await retryRequest(db, args[0]) : 'not_found'
      if (json) printJson({ request_id: args[0], outcome })
      if (outcome === 'retried') {
        if (!json) console.log('it has a new job')
        return 0
      }
      return refuse(
        {
          not_found: NO_REQUEST,
          running: 'Its job is running now. A job of a dead worker is freed within half a minute.',
          not_working: 'It is not in progress. A failed request is tried again when its caller pays again.',
        }[outcome],
      )
    },
  },
  'requests cancel': {
    takes: ['request-id'],
    about:
      'Fail a request that cannot have been charged, and free its payment. Asks for confirmation, except with --yes.',
    async run(db, config, { args, json, confirm }) {
      const found = isId(args[0]) ? await showRequest(db, args[0]) : null
      if (!found) return refuse(NO_REQUEST)
      const question = `Fail request ${found.id}, which is ${found.state}? Its work is lost, and its caller is told that it was cancelled.`
      if (!(await confirm(question))) return refuse('Nothing was changed.', 2)
      const outcome = await cancelAsOperator(db, found.id, config.maxInFlightPerPayer)
      if (json) printJson({ request_id: found.id, outcome })
      if (outcome === 'cancelled') {
        if (!json) console.log('cancelled; nothing was charged')
        return 0
      }
      return refuse(
        {
          not_found: NO_REQUEST,
          chargeable:
            'Its payment may have been charged, so it must be completed or proved unpaid. See `payments show`.',
          not_working: 'It is not in progress: there is nothing to cancel.',
        }[outcome],
      )
    },
  },
}

const NO_REQUEST = 'There is no such request.'

function refuse(message: string, code = 1): number {
  console.error(message)
  return code
}

function isId(text: string | undefined): text is string {
  return z.uuid().safeParse(text).success
}

function stateOf({ options }: CommandCall): State {
  const parsed = z.enum(states).safeParse(options.state)
  if (!parsed.success) throw new UsageError(`--state is one of ${states.join(', ')}.`)
  return parsed.data
}

function render(request: RequestDetail): string {
  const { job_row: job } = request
  const lines: [name: string, text: string | null][] = [
    ['request', request.id],
    ['state', `${request.state} for ${duration(request.seconds)}`],
    ['created', utc(request.created_at)],
    ['body', request.body ? JSON.stringify(request.body) : 'deleted'],
    ['error', request.error ? JSON.stringify(request.error) : null],
    ['waiting', request.waiting ? JSON.stringify(request.waiting) : null],
    ['receipt', request.receipt_serial ? String(request.receipt_serial) : null],
    [
      'job',
      job
        ? `${request.job}, attempt ${job.attempts} of ${job.max_attempts}, due ${utc(job.run_at)}` +
          `${job.locked_by ? `, held by ${job.locked_by}` : ''}${job.last_error ? `, last error: ${job.last_error}` : ''}`
        : 'none',
    ],
    ...request.payments.map((entry): [string, string] => [
      'payment',
      `${utc(entry.entered_at)} ${entry.outcome}${entry.reason ? ` (${entry.reason})` : ''} ${entry.amount_atomic} on ` +
        `${entry.network} by ${entry.payer}${entry.transaction ? `, transaction ${entry.transaction}` : ''}`,
    ]),
  ]
  return lines.flatMap(([name, text]) => (text === null ? [] : `${name.padEnd(8)} ${printable(text)}`)).join('\n')
}
