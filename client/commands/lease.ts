// `countersign lease`: signed permission for one agent to do one action.
import type { LeaseAnswer } from '../client.ts'
import { type CommandGroup, command } from './command.ts'
import { confirm, YES } from './confirm.ts'
import { fields, table, timeOf } from './tables.ts'
import { ACCOUNT, answer, collect, LIMIT, needed, openAccount, readWhole } from './toolkit.ts'

const MAX_TTL_S = 86_400
const PAGE = 1000

function describe({ lease, state, revoked_ms, receipts }: LeaseAnswer): string {
  return fields({
    lease: lease.lease_id,
    state,
    agent: lease.agent,
    action: lease.action,
    limit: lease.lim,
    'granted at': timeOf(lease.granted_ms),
    'ends at': timeOf(lease.expires_ms),
    'renew by': timeOf(lease.recheck_by_ms),
    'revoked at': timeOf(revoked_ms),
    receipts: [receipts.granted, receipts.renewed, receipts.revoked].filter((serial) => serial !== null).join(', '),
  })
}

const grant = command({
  summary: 'grant a lease',
  operands: [],
  usage: '--agent AGENT --action ACTION --lim TEXT --ttl SECONDS',
  about: 'The service signs the limit and does not interpret it: your gateway enforces it.',
  examples: ["countersign lease grant --agent buyer-1 --action pay --lim 'usd<=5' --ttl 3600 --json > lease.json"],
  options: {
    ...ACCOUNT,
    agent: { type: 'string', value: 'AGENT', help: 'who may' },
    action: { type: 'string', value: 'ACTION', help: 'what' },
    lim: { type: 'string', value: 'TEXT', help: 'within which limit' },
    ttl: { type: 'string', value: 'SECONDS', help: `for how long; 1 to ${MAX_TTL_S}` },
  },
  async run(_, options) {
    const input = {
      agent: needed('--agent', options.agent),
      action: needed('--action', options.action),
      lim: needed('--lim', options.lim),
      ttl_s: readWhole('--ttl', needed('--ttl', options.ttl), 1, MAX_TTL_S),
    }
    const granted = await (await openAccount(options)).grantLease(input)
    return answer(granted, options.json, () => describe(granted))
  },
})

const renew = command({
  summary: 'extend a lease for up to 30 seconds, never past its end',
  operands: ['ID'],
  examples: ['countersign lease renew ID --json > lease.json'],
  options: ACCOUNT,
  async run([lease_id = ''], options) {
    const renewed = await (await openAccount(options)).renewLease({ lease_id })
    return answer(renewed, options.json, () => describe(renewed))
  },
})

const revoke = command({
  summary: 'end a lease; it takes effect within 30 seconds everywhere',
  operands: ['ID'],
  examples: ['countersign lease revoke ID --yes'],
  options: { ...ACCOUNT, yes: YES },
  async run([lease_id = ''], options) {
    const account = await openAccount(options)
    if (!(await confirm(`Revoke the lease ${lease_id}? It cannot be taken up again.`, options.yes))) return 2
    const revoked = await account.revokeLease({ lease_id })
    return answer(revoked, options.json, () =>
      fields({ lease: revoked.lease_id, state: revoked.state, 'revoked at': timeOf(revoked.revoked_ms) }),
    )
  },
})

const show = command({
  summary: 'one lease',
  operands: ['ID'],
  examples: ['countersign lease show ID'],
  options: ACCOUNT,
  async run([lease_id = ''], options) {
    const lease = await (await openAccount(options)).getLease({ lease_id })
    return answer(lease, options.json, () => describe(lease))
  },
})

const check = command({
  summary: 'ask the service whether a lease is valid; exit 1 if it is not',
  operands: ['ID'],
  about: 'A gateway does this offline, with verifyLease of countersign-sdk/lease.',
  examples: ['countersign lease check ID --agent buyer-1 --action pay'],
  options: {
    ...ACCOUNT,
    agent: { type: 'string', value: 'AGENT', help: 'and whether it is for this agent' },
    action: { type: 'string', value: 'ACTION', help: 'and for this action' },
  },
  async run([lease_id = ''], { agent, action, ...options }) {
    const verdict = await (await openAccount(options)).verifyLease({ lease_id, agent, action })
    const { valid, reason, state, lim } = verdict
    answer(verdict, options.json, () =>
      fields({ lease: lease_id, good: valid ? 'yes' : 'NO', reason, state, limit: lim }),
    )
    return valid ? 0 : 1
  },
})

const list = command({
  summary: 'the leases of the account, newest first',
  operands: [],
  examples: ['countersign lease list', 'countersign lease list --all --limit 1000 --json'],
  options: { ...ACCOUNT, ...LIMIT, all: { type: 'boolean', help: 'expired and revoked ones too' } },
  async run(_, options) {
    const limit = readWhole('--limit', options.limit)
    const account = await openAccount(options)
    const state = options.all ? 'all' : 'active'
    const { rows, next } = await collect(limit, PAGE, async (limit, before) => {
      const page = await account.listLeases({ state, limit, before: before?.toString() })
      return { rows: page.leases, next: page.next }
    })
    return answer({ leases: rows, next }, options.json, () =>
      table(rows, {
        lease: ({ lease }) => lease.lease_id,
        state: ({ state }) => state,
        agent: ({ lease }) => lease.agent,
        action: ({ lease }) => lease.action,
        limit: ({ lease }) => lease.lim,
        ends: ({ lease }) => timeOf(lease.expires_ms),
      }),
    )
  },
})

export const lease: CommandGroup = {
  summary: 'signed permission for one agent to do one action',
  commands: { grant, renew, revoke, show, check, list },
  examples: [
    "countersign lease grant --agent buyer-1 --action pay --lim 'usd<=5' --ttl 3600",
    'countersign lease list',
    'countersign lease revoke ID',
  ],
}
