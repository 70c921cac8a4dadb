// Lists and shows accounts, and disables them: npm run cli -- accounts ....
import { z } from 'zod'
import { TIERS } from '../../accounts/tiers.ts'
import { transact } from '../../db/pool.ts'
import { type AccountDetail, listAccounts, setDisabled, showAccount } from '../accounts.ts'
import { countOption, type OperatorCommand, printable, printJson, table, UsageError, utc } from './command.ts'

export const accountCommands: Record<string, OperatorCommand> = {
  'accounts list': {
    about: 'List accounts, the newest first.',
    options: {
      tier: { value: 'TIER', about: `one of ${TIERS.join(', ')}` },
      disabled: { about: 'only disabled ones' },
      limit: { value: 'N', about: 'longest list (20)' },
    },
    async run(db, _config, call) {
      const tier = z.enum(TIERS).optional().safeParse(call.options.tier)
      if (!tier.success) throw new UsageError(`--tier is one of ${TIERS.join(', ')}.`)
      const found = await listAccounts(db, {
        ...(tier.data && { tier: tier.data }),
        disabled: call.options.disabled === true,
        limit: countOption(call, 'limit', 20),
      })
      if (call.json) printJson(found)
      else if (found.length === 0) console.log('no such accounts')
      else
        console.log(
          table(
            ['account', 'tier', 'created', 'last used', ''],
            found.map(({ handle, tier, created_at, last_used_at, disabled_at }) => [
              handle,
              tier,
              utc(created_at),
              last_used_at && utc(last_used_at),
              disabled_at ? `disabled ${utc(disabled_at)}` : '',
            ]),
          ),
        )
      return 0
    },
  },
  'accounts show': {
    takes: ['handle'],
    about: 'Show one account: tier, keys without their secrets, what it has, and its use today.',
    async run(db, _config, { args: [handle = ''], json }) {
      const found = await transact(db, (tx) => showAccount(tx, handle), { readOnly: true })
      if (!found) return refuse(NO_ACCOUNT)
      if (json) printJson(found)
      else console.log(render(found))
      return 0
    },
  },
  'accounts disable': {
    takes: ['handle'],
    about: "Refuse an account's API keys. Nothing is deleted. Asks for confirmation, except with --yes.",
    async run(db, _config, { args: [handle = ''], json, confirm }) {
      const question =
        `Disable ${handle}? Its keys are refused at once: it cannot renew its leases, and its watchdogs raise alerts when ` +
        'heartbeats stay away.'
      if (!(await transact(db, (tx) => showAccount(tx, handle), { readOnly: true }))) return refuse(NO_ACCOUNT)
      if (!(await confirm(question))) return refuse('Nothing was changed.', 2)
      await setDisabled(db, handle, true)
      if (json) printJson({ handle, disabled: true })
      else console.log(`${handle} is disabled; \`accounts enable\` undoes this`)
      return 0
    },
  },
  'accounts enable': {
    takes: ['handle'],
    about: "Accept a disabled account's API keys again.",
    async run(db, _config, { args: [handle = ''], json }) {
      if (!(await setDisabled(db, handle, false))) return refuse(NO_ACCOUNT)
      if (json) printJson({ handle, disabled: false })
      else console.log(`${handle} is enabled`)
      return 0
    },
  },
}

const NO_ACCOUNT = 'There is no such account.'

function refuse(message: string, code = 1): number {
  console.error(message)
  return code
}

function render(account: AccountDetail): string {
  const lines: [string, string | number][] = [
    ['account', account.handle],
    ['tier', `${account.tier}${account.granted_tier === account.tier && account.tier !== 'free' ? ', granted' : ''}`],
    ['created', utc(account.created_at)],
    ['state', account.disabled_at ? `disabled since ${utc(account.disabled_at)}` : 'enabled'],
    ['leases', `${account.leases_active} active`],
    ['watchdogs', `${account.watchdogs}, ${account.watchdogs_down} down`],
    ['citations', account.citation_watches],
    ['journal', `${account.journal_slots} slots`],
    ['today', `${account.receipts_today} receipts, ${account.quote_pages_today} pages checked for quotes`],
    ['alerts', `${account.alerts_pending} pending, ${account.webhooks_failing} webhooks failing or disabled`],
    ...account.keys.map(({ kind, label, created_at, expires_at, last_used_at }): [string, string] => [
      'key',
      `${kind}${label ? ` "${label}"` : ''}, made ${utc(created_at)}, ` +
        `${last_used_at ? `used ${utc(last_used_at)}` : 'never used'}${expires_at ? `, expires ${utc(expires_at)}` : ''}`,
    ]),
  ]
  return lines.map(([name, text]) => `${name.padEnd(9)} ${printable(String(text))}`).join('\n')
}
