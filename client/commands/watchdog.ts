// `countersign watchdog` and `countersign heartbeat`: alerts for missing heartbeats.
import { UsageError } from '../arguments.ts'
import type { Watchdog } from '../client.ts'
import { type CommandGroup, command } from './command.ts'
import { confirm, YES } from './confirm.ts'
import { fields, table } from './tables.ts'
import { ACCOUNT, answer, answerWithSecret, needed, openAccount, readWhole, SAVE } from './toolkit.ts'
import { webhookCommands } from './webhooks.ts'

function describe(dog: Watchdog & { webhook_secret?: string }): string {
  return fields({
    name: dog.name,
    state: dog.state,
    'beats every': `${dog.interval_s} s, and ${dog.grace_s} s of grace`,
    'alert after': `${dog.alert_after} missed`,
    'remind every': dog.remind_every_s === null ? null : `${dog.remind_every_s} s`,
    'due at': dog.due_at,
    'last heartbeat': dog.last_heartbeat_at,
    note: dog.note,
    'down since': dog.down_since,
    'paused until': dog.paused_until,
    webhook: `${dog.webhook_url} (${dog.webhook_state})`,
    ...(dog.webhook_secret !== undefined && { 'webhook secret': dog.webhook_secret }),
  })
}

const set = command({
  summary: 'make a watchdog, or change its terms',
  operands: ['NAME'],
  usage: '--interval SECONDS --webhook URL',
  about: `Its clock starts when it is made. The webhook's secret is shown once, when the watchdog is made; --save is for that time.`,
  examples: ['countersign watchdog set nightly --interval 86400 --webhook https://example.com/hook --save hook.secret'],
  options: {
    ...ACCOUNT,
    ...SAVE,
    interval: { type: 'string', value: 'SECONDS', help: 'between two heartbeats; 10 to 2,592,000' },
    webhook: { type: 'string', value: 'URL', help: 'where alerts go; https only' },
    grace: {
      type: 'string',
      value: 'SECONDS',
      help: 'seconds of grace after that; default: 5, or a tenth of the interval',
    },
    'alert-after': { type: 'string', value: 'N', help: 'intervals that must be missed; default: 1' },
    'remind-every': { type: 'string', value: 'SECONDS', help: 'seconds between reminders during an outage' },
  },
  async run([name = ''], options) {
    const { grace, 'alert-after': after, 'remind-every': remind } = options
    const input = {
      name,
      interval_s: readWhole('--interval', needed('--interval', options.interval)),
      webhook_url: needed('--webhook', options.webhook),
      grace_s: grace === undefined ? undefined : readWhole('--grace', grace, 0),
      alert_after: after === undefined ? undefined : readWhole('--alert-after', after),
      remind_every_s: remind === undefined ? undefined : readWhole('--remind-every', remind),
    }
    const account = await openAccount(options)
    return answerWithSecret(() => account.putWatchdog(input), 'webhook_secret', options, describe)
  },
})

const show = command({
  summary: 'one watchdog',
  operands: ['NAME'],
  examples: ['countersign watchdog show nightly'],
  options: ACCOUNT,
  async run([name = ''], options) {
    const dog = await (await openAccount(options)).getWatchdog({ name })
    return answer(dog, options.json, () => describe(dog))
  },
})

const list = command({
  summary: 'all watchdogs',
  operands: [],
  examples: ['countersign watchdog list'],
  options: ACCOUNT,
  async run(_, options) {
    const found = await (await openAccount(options)).listWatchdogs()
    return answer(found, options.json, () =>
      table(found.watchdogs, {
        name: (dog) => dog.name,
        state: (dog) => dog.state,
        interval: (dog) => `${dog.interval_s} s`,
        'last heartbeat': (dog) => dog.last_heartbeat_at,
        due: (dog) => dog.due_at,
        webhook: (dog) => dog.webhook_state,
      }),
    )
  },
})

const remove = command({
  summary: 'delete a watchdog and its alerts',
  operands: ['NAME'],
  examples: ['countersign watchdog delete nightly --yes'],
  options: { ...ACCOUNT, yes: YES },
  async run([name = ''], options) {
    const account = await openAccount(options)
    if (!(await confirm(`Delete the watchdog ${name} and its alerts?`, options.yes))) return 2
    await account.deleteWatchdog({ name })
    return answer({ name, deleted: true }, options.json, () => `${name} is deleted.`)
  },
})

const pause = command({
  summary: 'expect no heartbeats, until a time or until it is resumed',
  operands: ['NAME'],
  examples: ['countersign watchdog pause nightly --until 2026-12-27T00:00:00Z'],
  options: { ...ACCOUNT, until: { type: 'string', value: 'TIME', help: 'an ISO time with its zone' } },
  async run([name = ''], options) {
    const until = options.until === undefined ? undefined : readTime('--until', options.until)
    const dog = await (await openAccount(options)).pauseWatchdog({ name, paused: true, until })
    return answer(dog, options.json, () => describe(dog))
  },
})

function readTime(option: string, text: string): string {
  if (!/(Z|[+-]\d\d:\d\d)$/.test(text) || Number.isNaN(Date.parse(text)))
    throw new UsageError(`${option} ${text} is not an ISO time with its zone, such as 2026-12-27T00:00:00Z.`)
  return new Date(text).toISOString()
}

const resume = command({
  summary: 'expect heartbeats again',
  operands: ['NAME'],
  examples: ['countersign watchdog resume nightly'],
  options: ACCOUNT,
  async run([name = ''], options) {
    const dog = await (await openAccount(options)).pauseWatchdog({ name, paused: false })
    return answer(dog, options.json, () => describe(dog))
  },
})

export const watchdog: CommandGroup = {
  summary: 'alarms for silence',
  commands: {
    set,
    show,
    list,
    delete: remove,
    pause,
    resume,
    ...webhookCommands('watchdog', {
      test: (account, input) => account.testWatchdog(input),
      alerts: (account, input) => account.listAlerts(input),
      redeliver: (account, input) => account.redeliverAlert(input),
      rotate: (account, input) => account.rotateWebhookSecret(input),
    }),
  },
  examples: [
    'countersign watchdog set nightly --interval 86400 --webhook https://example.com/hook --save hook.secret',
    'countersign heartbeat nightly',
    'countersign watchdog list',
  ],
}

export const heartbeat = command({
  summary: 'tell a watchdog that a job is alive, or that it went wrong',
  operands: ['NAME'],
  about: 'An API key for heartbeats alone is enough.',
  examples: [
    'countersign heartbeat nightly',
    "./backup.sh && countersign heartbeat nightly || countersign heartbeat nightly --fail --note 'no space left'",
  ],
  options: {
    ...ACCOUNT,
    fail: { type: 'boolean', help: 'the job went wrong' },
    note: { type: 'string', value: 'TEXT', help: 'text that is sent in the alert' },
  },
  async run([name = ''], options) {
    const { fail, note } = options
    const beat = await (await openAccount(options)).sendHeartbeat({ name, status: fail ? 'fail' : undefined, note })
    return answer(beat, options.json, () => fields({ name, state: beat.state, 'due at': beat.due_at }))
  },
})
