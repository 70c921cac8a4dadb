// Prints the status on one screen: npm run cli -- status.

import { processState } from '../presence.ts'
import { costOf, countOf, readSpending, type Spending } from '../spending.ts'
import { readStatus, type Status } from '../status.ts'
import { duration, type OperatorCommand, printable, printJson, table, utc } from './command.ts'

export const statusCommands: Record<string, OperatorCommand> = {
  status: {
    about: 'Show the service on one screen: processes, queue, rates, failures, money, chain, and warnings with cures.',
    async run(db, config, { json }) {
      const status = await readStatus(db, config)
      const model = await readSpending(db, status.at.getTime())
      if (json) printJson({ ...status, model })
      else console.log(render(status, model))
      return status.warnings.length === 0 ? 0 : 1
    },
  },
}

function render(status: Status, model: Spending): string {
  const { requests, queue, assessor, chain, watchdogs, alerts, accounts, unresolved_payments: unresolved } = status
  const lines: [string, string][] = [
    ['queue', `${queue.due} due, ${queue.running} running, ${queue.later} later, ${queue.dead} dead`],
    [
      'requests',
      `${requests.working} at work${counted(requests.by_state)}, oldest ${duration(requests.oldest_seconds)}`,
    ],
    ['last hour', outcomes(status.last_hour)],
    ['last day', outcomes(status.last_day)],
    [
      'assessor',
      `${assessor.methods.join(' and ') || 'none'}${assessor.paused_seconds > 0 ? `, paused for ${assessor.paused_seconds} s` : ''}${assessor.problems.map((one) => `; ${printable(one)}`).join('')}`,
    ],
    ['model', `${modelUse('hour', model.hour)}; ${modelUse('day', model.day)}`],
    ['today', status.money_today.map(money).join('; ') || 'nothing was charged'],
    [
      'payments',
      unresolved.count === 0
        ? 'none unresolved'
        : `${unresolved.count} unresolved, the oldest for ${duration(unresolved.oldest_seconds)}`,
    ],
    [
      'chain',
      chain.at ? `receipt ${chain.serial} of ${utc(chain.at)}, ${chain.receipt_hash.slice(0, 16)}...` : 'empty',
    ],
    [
      'watchdogs',
      `${counted(watchdogs.by_state).replace(/^ \(|\)$/g, '') || 'none'}; deadlines checked ${duration(watchdogs.judged_seconds_ago)} ago`,
    ],
    [
      'alerts',
      `${alerts.pending} pending${alerts.pending > 0 ? `, the oldest for ${duration(alerts.oldest_seconds)}` : ''}, ` +
        `${alerts.failing_webhooks} webhooks failing or disabled`,
    ],
    ['accounts', `${accounts.total}${accounts.disabled > 0 ? `, ${accounts.disabled} disabled` : ''}`],
  ]
  const processes = status.processes.map((one) => [
    one.kind,
    one.id.slice(0, 8),
    one.host,
    one.pid,
    utc(one.started_at),
    processState(one),
  ])
  const warnings = status.warnings.map(({ what, cure }) => `WARNING ${printable(what)}\n        cure: ${cure}`)
  return [
    `Countersign at ${utc(status.at)} UTC`,
    '',
    processes.length === 0
      ? 'no process has reported'
      : table(['process', 'id', 'host', 'pid', 'started', 'state'], processes),
    '',
    ...lines.map(([name, text]) => `${name.padEnd(10)} ${text}`),
    '',
    ...(warnings.length === 0 ? ['all is well'] : warnings),
  ].join('\n')
}

function counted(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

function outcomes({ settled, failed, unpaid, failures }: Status['last_hour']): string {
  const ended = settled + failed
  const share = ended === 0 ? '' : `, ${((100 * failed) / ended).toFixed(1)} % of ${ended}`
  return `${settled} charged, ${failed} failed${counted(failures)}${share}, ${unpaid} not paid`
}

function modelUse(span: string, use: Spending['hour']): string {
  const [calls, tokens] = [countOf(use.calls), countOf(use.tokens)]
  return `last ${span} ${calls === 0 ? 'not asked' : `${calls} calls, ${tokens} tokens, ${costOf(use) ?? 'price not set'}`}`
}

function money({ mode, network, payments, amount_usd }: Status['money_today'][number]): string {
  return `${amount_usd} USD in ${payments} payments on ${network}${mode === 'offline' ? ' (simulated)' : ''}`
}
