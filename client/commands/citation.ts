// `countersign citation`: watches over quotes that were bought, and raises an alert when a page no longer shows one.
import type { CitationWatch } from '../client.ts'
import { type CommandGroup, command } from './command.ts'
import { confirm, YES } from './confirm.ts'
import { checkRecoveryToken, readSecretFile } from './secret-file.ts'
import { fields, table } from './tables.ts'
import { ACCOUNT, answer, answerWithSecret, needed, openAccount, readWhole, SAVE } from './toolkit.ts'
import { webhookCommands } from './webhooks.ts'

function describe(watch: CitationWatch & { webhook_secret?: string }): string {
  const { last_check: check } = watch
  return fields({
    name: watch.name,
    state: watch.state,
    page: watch.source_url,
    quote: watch.quote,
    bought: `${watch.request_id} ${watch.evidence_id}`,
    'looked at': `every ${watch.every_hours} h, next ${watch.next_check_at}`,
    'last look':
      check && `${check.outcome}${check.outcome === 'unreadable' ? ` (${check.code})` : ''}, ${check.checked_at}`,
    ...(check?.outcome === 'changed' && { nearest: check.nearest.quote }),
    webhook: `${watch.webhook_url} (${watch.webhook_state})`,
    ...(watch.webhook_secret !== undefined && { 'webhook secret': watch.webhook_secret }),
  })
}

const set = command({
  summary: 'watch a quote of a verification that was bought, or change the terms',
  operands: ['NAME'],
  usage: '--webhook URL',
  about: `--request, --evidence and --token say which quote; a watch that is there keeps its quote without them. The webhook's secret
is shown once, when the watch is made; --save is for that time.`,
  examples: [
    'countersign citation set bridge --webhook https://example.com/hook --request ID --evidence e1 --token token.txt',
    'countersign citation set bridge --webhook https://example.com/other-hook --every 6',
  ],
  options: {
    ...ACCOUNT,
    ...SAVE,
    webhook: { type: 'string', value: 'URL', help: 'where alerts go; https only' },
    request: { type: 'string', value: 'REQUEST_ID', help: 'the verification' },
    evidence: { type: 'string', value: 'ID', help: 'the quote in it: e1 to e6' },
    token: { type: 'string', value: 'FILE', help: 'holds the recovery token of the verification, mode 600' },
    every: { type: 'string', value: 'HOURS', help: 'hours between two checks of the page, 1 to 720; default 24' },
  },
  async run([name = ''], options) {
    const { every, request, evidence, token } = options
    const input = {
      name,
      webhook_url: needed('--webhook', options.webhook),
      every_hours: every === undefined ? undefined : readWhole('--every', every),
      ...([request, evidence, token].some((one) => one !== undefined) && {
        request_id: needed('--request', request),
        evidence_id: needed('--evidence', evidence),
        recovery_token: await readToken(needed('--token', token)),
      }),
    }
    const account = await openAccount(options)
    return answerWithSecret(() => account.putCitationWatch(input), 'webhook_secret', options, describe)
  },
})

function readToken(file: string): Promise<string> {
  return readSecretFile(file, 'a recovery token', (token) => checkRecoveryToken(file, token))
}

const show = command({
  summary: 'one watch',
  operands: ['NAME'],
  examples: ['countersign citation show bridge'],
  options: ACCOUNT,
  async run([name = ''], options) {
    const watch = await (await openAccount(options)).getCitationWatch({ name })
    return answer(watch, options.json, () => describe(watch))
  },
})

const list = command({
  summary: 'all watches',
  operands: [],
  examples: ['countersign citation list'],
  options: ACCOUNT,
  async run(_, options) {
    const found = await (await openAccount(options)).listCitationWatches()
    return answer(found, options.json, () =>
      table(found.citation_watches, {
        name: (watch) => watch.name,
        state: (watch) => watch.state,
        page: (watch) => watch.source_url,
        'next look': (watch) => watch.next_check_at,
        webhook: (watch) => watch.webhook_state,
      }),
    )
  },
})

const remove = command({
  summary: 'delete a watch and its alerts',
  operands: ['NAME'],
  examples: ['countersign citation delete bridge --yes'],
  options: { ...ACCOUNT, yes: YES },
  async run([name = ''], options) {
    const account = await openAccount(options)
    if (!(await confirm(`Delete the citation watch ${name} and its alerts?`, options.yes))) return 2
    await account.deleteCitationWatch({ name })
    return answer({ name, deleted: true }, options.json, () => `${name} is deleted.`)
  },
})

const check = command({
  summary: 'ask for a check of the page before the next one is due',
  operands: ['NAME'],
  about: 'At most once a minute. The check takes some seconds; show prints its outcome.',
  examples: ['countersign citation check bridge'],
  options: ACCOUNT,
  async run([name = ''], options) {
    const watch = await (await openAccount(options)).checkCitationWatch({ name })
    return answer(watch, options.json, () => describe(watch))
  },
})

export const citation: CommandGroup = {
  summary: 'watches over quotes that were bought',
  commands: {
    set,
    show,
    list,
    delete: remove,
    check,
    ...webhookCommands('citation', {
      test: (account, input) => account.testCitationWatch(input),
      alerts: (account, input) => account.listCitationAlerts(input),
      redeliver: (account, input) => account.redeliverCitationAlert(input),
      rotate: (account, input) => account.rotateCitationWebhookSecret(input),
    }),
  },
  examples: [
    'countersign citation set bridge --webhook https://example.com/hook --request ID --evidence e1 --token token.txt',
    'countersign citation check bridge && countersign citation show bridge',
  ],
}
