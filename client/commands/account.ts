// `countersign account`: registration, API keys, usage, and the pages where a person pays for a tier.
import { UsageError } from '../arguments.ts'
import type { ApiKeyKind, Usage } from '../client.ts'
import { type CommandGroup, command } from './command.ts'
import { confirm, YES } from './confirm.ts'
import { fields, table } from './tables.ts'
import { ACCOUNT, answer, answerWithSecret, openAccount, openService, readWhole, SAVE, SERVICE } from './toolkit.ts'

const KINDS: readonly ApiKeyKind[] = ['full', 'read_only', 'heartbeat']

const register = command({
  summary: 'make an account, and get its API key, once',
  operands: ['HANDLE'],
  usage: '--save FILE',
  about: `The handle has 1 to 64 characters of a-z, 0-9, _ and -, and is public: it stands in the receipts of the account. A lost
API key cannot be recovered.`,
  examples: ['countersign account register acme --save acme.key'],
  options: { ...SERVICE, ...SAVE },
  run: ([handle = ''], options) => {
    const service = openService(options)
    return answerWithSecret(
      () => service.register({ handle }),
      'api_key',
      options,
      ({ handle, tier, api_key }) => fields({ handle, tier, 'API key': api_key }),
    )
  },
})

const show = command({
  summary: 'the tier, its limits, and how much of them is used',
  operands: [],
  examples: ['countersign account show', 'countersign account show --json | jq .used.receipts_today'],
  options: ACCOUNT,
  async run(_, options) {
    const usage = await (await openAccount(options)).getUsage()
    return answer(usage, options.json, () => describeUsage(usage))
  },
})

function describeUsage({ handle, tier, limits, used, resets_at, subscription }: Usage): string {
  // What is counted by the day is named `receipts_today` among the uses and `receipts_per_day` among the limits.
  const usedOf = (limit: string) => Object.entries(used).find(([name]) => name.replace('_today', '_per_day') === limit)
  const rows = Object.entries(limits)
  return [
    fields({ handle, tier, 'days end at': resets_at, subscription: subscription?.status }),
    table(rows, { limit: ([name]) => name, used: ([name]) => usedOf(name)?.[1], of: ([, most]) => most }),
  ].join('\n\n')
}

const listKeys = command({
  summary: 'the API keys of the account, without the secrets',
  operands: [],
  examples: ['countersign account keys list'],
  options: ACCOUNT,
  async run(_, options) {
    const list = await (await openAccount(options)).listApiKeys()
    return answer(list, options.json, () =>
      table(list.api_keys, {
        id: (key) => key.id,
        kind: (key) => key.kind,
        label: (key) => key.label,
        created: (key) => key.created_at,
        'last used': (key) => key.last_used_at,
        ends: (key) => key.expires_at,
      }),
    )
  },
})

const createKey = command({
  summary: 'make a further API key, which is shown once',
  operands: ['KIND'],
  about: 'KIND: full, read_only (reads alone), or heartbeat (heartbeats alone).',
  examples: ['countersign account keys create heartbeat --label nightly --save nightly.key'],
  options: { ...ACCOUNT, ...SAVE, label: { type: 'string', value: 'TEXT', help: 'a name for people' } },
  async run([word = ''], options) {
    const kind = KINDS.find((one) => one === word)
    if (!kind) throw new UsageError(`${word} is none of ${KINDS.join(', ')}.`)
    const account = await openAccount(options)
    const { label } = options
    return answerWithSecret(
      () => account.createApiKey({ kind, label }),
      'api_key',
      options,
      ({ id, kind, api_key }) => fields({ id, kind, 'API key': api_key }),
    )
  },
})

const revokeKey = command({
  summary: 'end an API key, at once or later',
  operands: ['ID'],
  examples: ['countersign account keys revoke ID --after 3600', 'countersign account keys revoke ID --yes'],
  options: {
    ...ACCOUNT,
    after: { type: 'string', value: 'SECONDS', help: 'the key works so long; at most seven days, default 0' },
    yes: YES,
  },
  async run([id = ''], options) {
    const account = await openAccount(options)
    const after_s = options.after === undefined ? undefined : readWhole('--after', options.after, 0)
    const when = after_s ? `after ${after_s} seconds` : 'at once'
    if (!(await confirm(`End the API key ${id} ${when}? A key that has ended stays so.`, options.yes))) return 2
    const revoked = await account.revokeApiKey({ id, after_s })
    return answer(revoked, options.json, () => fields({ id: revoked.id, 'ends at': revoked.ends_at }))
  },
})

const upgrade = command({
  summary: 'the address of the page where a person buys a tier',
  operands: ['TIER'],
  about: 'TIER: dev or pro. The command charges nothing; the page says what the tier costs.',
  examples: ['countersign account upgrade dev'],
  options: ACCOUNT,
  async run([tier = ''], options) {
    if (tier !== 'dev' && tier !== 'pro') throw new UsageError(`${tier} is neither dev nor pro.`)
    const checkout = await (await openAccount(options)).createCheckout({ tier })
    const { price_usd, checkout_url, expires_at } = checkout
    return answer(checkout, options.json, () =>
      fields({ tier, 'price per month': `${price_usd} USD`, 'pay at': checkout_url, 'open until': expires_at }),
    )
  },
})

const billing = command({
  summary: 'the address of the page where a person changes or ends the subscription',
  operands: [],
  examples: ['countersign account billing'],
  options: ACCOUNT,
  async run(_, options) {
    const portal = await (await openAccount(options)).openBillingPortal()
    return answer(portal, options.json, () => fields({ 'go to': portal.portal_url, 'open until': portal.expires_at }))
  },
})

export const account: CommandGroup = {
  summary: 'an account of the control toolkit: its keys and its usage',
  commands: {
    register,
    show,
    keys: {
      summary: 'the API keys of the account',
      commands: { list: listKeys, create: createKey, revoke: revokeKey },
      examples: ['countersign account keys list'],
    },
    upgrade,
    billing,
  },
  examples: [
    'export COUNTERSIGN_SERVICE=https://service.example COUNTERSIGN_KEY=acme.key',
    'countersign account register acme --save acme.key',
    'countersign account keys create heartbeat --label nightly --save nightly.key',
    'countersign account show',
  ],
}
