// Budgets of all callers together, and the networks that callers are counted by.
import t from 'tap'
import { addressKey, networkKey } from '../../server/accounts/address-key.ts'
import { CallCounts } from '../../server/accounts/call-counts.ts'
import { buildSharedBudget, NEWCOMER_USES, partsOf } from '../../server/accounts/shared-budget.ts'
import { CALLER_LIMITS } from '../../server/accounts/tiers.ts'
import { openAccountHarness } from './harness.ts'

function counter(points: number, seconds = 60) {
  const counts = new CallCounts({ seconds })
  return { points, add: async (key: string) => counts.add(key), takeBack: async (key: string) => counts.takeBack(key) }
}

const budgetOf = (points: number) => {
  const { common, reserve } = partsOf(points)
  return buildSharedBudget({ common: counter(common), reserve: counter(reserve), recent: counter(1e9, 3600) })
}

t.test('an IPv6 address counts with its /64 and its /48, an IPv4 address alone', async (t) => {
  t.equal(addressKey('[2001:db8:1:2::5]:443'), '2001:db8:1:2::/64')
  t.equal(networkKey('[2001:db8:1:2::5]:443'), '2001:db8:1::/48')
  t.equal(networkKey('2001:db8:1:ffff::5%eth0'), '2001:db8:1::/48')
  t.not(networkKey('2001:db8:2::5'), '2001:db8:1::/48')
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1:80']) t.equal(networkKey(address), '192.0.2.1')
  t.equal(networkKey('nothing'), 'unknown')
})

t.test('one network cannot use up a budget of all', async (t) => {
  const budget = budgetOf(100)
  let used = 0
  while (!(await budget.spend('greedy')).refusal) used++
  t.equal(used, 75)
  for (let n = 0; n < 25; n++) t.equal((await budget.spend(`newcomer ${n}`)).refusal, null)
  t.ok((await budget.spend('one more')).refusal, 'the reserve has an end')
})

t.test('a use that is given back counts nowhere', async (t) => {
  const budget = budgetOf(4)
  for (let n = 0; n < 50; n++) {
    const { giveBack } = await budget.spend('fails')
    t.ok(giveBack)
    await giveBack?.()
  }
  for (let n = 0; n < 3; n++) t.equal((await budget.spend('other')).refusal, null)
  for (let n = 0; n < NEWCOMER_USES; n++) await budget.spend('others')
  t.ok((await budget.spend('others')).refusal)
})

const PROXIED = { TRUST_PROXY: '1', RATE_LIMIT_PER_MINUTE: '100000' }

t.test('seven /64s of one /48 do not close registration, and have a limit of their own', async (t) => {
  await using office = await openAccountHarness(PROXIED)
  let made = 0
  const register = async (address: string) => {
    const body = { handle: `h${made++}-${Date.now()}` }
    return office.call('POST', '/v1/register', { body, headers: { 'x-forwarded-for': address } })
  }
  const statuses: number[] = []
  for (let n = 0; n < 130; n++) statuses.push((await register(`2001:db8:bad:${n % 7}::1`)).status)
  const most = partsOf(CALLER_LIMITS.registrations_per_minute).common
  t.equal(statuses.filter((status) => status === 201).length, Math.min(most, 100))
  t.equal((await register('2001:db8:600d::1')).status, 201, 'an honest address')
  t.equal((await register('192.0.2.7')).status, 201)
  await office.tables.query(`update registration_days set registrations = 100`)
  t.match(await register('2001:db8:bad:99::1'), { status: 429 })
})

t.test('unpaid quotes of one /48 have a limit, and leave room for others', async (t) => {
  await using office = await openAccountHarness(PROXIED)
  const { api } = office
  for (let n = 0; n < CALLER_LIMITS.quotes_per_network; n++) await api.limits.spendQuote(`2001:db8:bad:${n}::1`)
  await t.rejects(api.limits.spendQuote('2001:db8:bad:ffff::1'), { code: 'rate_limited' })
  await t.resolves(api.limits.spendQuote('2001:db8:600d::1'))
})

t.test('the last quarter of the accounts of a day is for networks that made at most two', async (t) => {
  await using office = await openAccountHarness(PROXIED)
  let made = 0
  const register = (address: string) => {
    const body = { handle: `d${made++}-${Date.now()}` }
    return office.call('POST', '/v1/register', { body, headers: { 'x-forwarded-for': address } })
  }
  for (const address of ['192.0.2.1', '192.0.2.2']) t.equal((await register(address)).status, 201)
  const most = CALLER_LIMITS.registrations_in_all_per_day
  // The one row that both have counted in is that of all callers.
  await office.tables.query(
    `update registration_days set registrations = ${partsOf(most).common} where registrations = 2`,
  )
  const statuses = []
  for (let n = 0; n < 3; n++) statuses.push((await register(`2001:db8:1:${n}::1`)).status)
  t.same(statuses, [201, 201, 429])
  t.equal((await register('2001:db8:2::1')).status, 201, 'another network')
  await office.tables.query(`update registration_days set registrations = ${most} where registrations > 1000`)
  const last = await register('2001:db8:3::1')
  t.match(last, { status: 429, body: { error: { code: 'daily_limit', message: /by all callers/ } } })
})
