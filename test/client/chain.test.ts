import t from 'tap'
import {
  type Attestation,
  type ChainOptions,
  type Verification,
  verifyAttestation,
  verifyChain,
} from '../../client/verification.ts'
import { attest, issueChain, issueResult, keys, sha256 } from './issuer.ts'
import { VKEY } from './log-issuer.ts'

const NAMES = [
  'plain_json',
  'well_formed_unicode',
  'shape',
  'start',
  'serials',
  'links',
  'times',
  'key_changes',
  'trusted_keys',
  'receipt_hashes',
  'attested_times',
  'signatures',
  'through',
  'head',
  'checkpoint',
]
const failed = ({ checks }: Verification) => checks.filter(({ ok }) => !ok).map(({ name }) => name)
const detail = ({ checks }: Verification, wanted: string) => checks.find(({ name }) => name === wanted)?.detail
const verdict = (chain: unknown, options: Partial<ChainOptions> = {}) =>
  failed(verifyChain(chain, { keys, ...options }))
const point = ({ serial, receipt_hash }: Attestation) => ({ serial, receipt_hash })

t.test('an attestation by itself', async (t) => {
  const verification = verifyAttestation(attest({ label: 'caf\u00e9 \u{1F600}', requested_by: 'someone' }), { keys })
  t.same(
    verification.checks.map(({ name, ok }) => [name, ok]),
    ['plain_json', 'well_formed_unicode', 'shape', 'trusted_key', 'signature', 'receipt_hash', 'attested_time'].map(
      (name) => [name, true],
    ),
  )
  t.equal(verification.ok, true)
  t.same(failed(verifyAttestation(issueResult().receipt.attestation, { keys })), [])
  const relabelled = { ...attest(), label: 'x' }
  t.same(failed(verifyAttestation(relabelled, { keys })), ['signature', 'receipt_hash'])
  const dressed = { ...attest(), proof: [] }
  t.same(failed(verifyAttestation(dressed, { keys })), [
    'shape',
    'trusted_key',
    'signature',
    'receipt_hash',
    'attested_time',
  ])
})

t.test('a whole chain', async (t) => {
  const chain = issueChain(5)
  const verification = verifyChain(chain, { keys, head: point(chain[4]!) })
  t.same(
    verification.checks.map(({ name, ok, detail }) => [name, ok, detail]),
    NAMES.map((name) => [name, true, name === 'checkpoint' ? 'no checkpoint was given to compare with' : undefined]),
  )
  t.equal(verification.ok, true)
})

t.test('a part of a chain', async (t) => {
  const chain = issueChain(6)
  const part = chain.slice(2)
  t.same(verdict(part, { from: point(chain[1]!) }), [])
  t.same(verdict(part, { from: point(chain[0]!) }), ['start'])
  t.same(verdict(part, { from: { serial: 2, receipt_hash: sha256('another') } }), ['start'])
  t.same(verdict(chain, { from: { serial: 0, receipt_hash: '0'.repeat(64) } }), [], 'from the head of an empty chain')
  const adrift = verifyChain(part, { keys })
  t.equal(adrift.ok, true)
  t.match(detail(adrift, 'start'), /starts at serial 3; no receipt before it/)
  t.match(detail(adrift, 'head'), /no head was given/)
})

t.test('the pinned head must be the last receipt of the range', async (t) => {
  const chain = issueChain(4)
  t.same(verdict(chain, { head: point(chain[2]!) }), ['head'])
  t.same(verdict(chain, { head: { serial: 4, receipt_hash: sha256('another') } }), ['head'])
  t.same(verdict(chain.slice(0, 3), { head: point(chain[3]!) }), ['head'], 'cut short')
})

t.test('a receipt that was pinned earlier must be in the range', async (t) => {
  const chain = issueChain(4)
  const points = chain.map(point)
  t.same(verdict(chain, { through: points }), [])
  t.same(verdict(chain, { through: [] }), [])
  const other = { serial: 2, receipt_hash: sha256('another history') }
  t.same(verdict(chain, { through: [other] }), ['through'])
  t.same(verdict(chain, { through: [points[1]!, other] }), ['through'], 'two pins that contradict each other')
  t.same(verdict(chain.slice(0, 2), { through: [points[2]!] }), ['through'], 'not reached')
  t.same(verdict(chain.slice(2), { through: [points[1]!] }), ['through'], 'passed before it begins')
  const missing = verifyChain(chain.slice(0, 2), { keys, through: points })
  t.equal(detail(missing, 'through'), 'serial 3, which was pinned, is not among these')
})

t.test('a verifier key that checked nothing is an error', async (t) => {
  t.same(verdict(issueChain(2), { vkey: VKEY }), ['checkpoint'])
})

t.test('a chain that was properly signed and is wrong', async (t) => {
  const chain = () => issueChain(4)
  // Signs entry 1 (serial 2) and all later ones again, so that the chain has only the intended fault.
  const resigned = (change: Partial<Attestation>) => {
    const entries = chain()
    entries[1] = attest({ ...withoutTime(entries[1]!), ...change })
    for (const i of [2, 3])
      entries[i] = attest({ ...withoutTime(entries[i]!), prev_hash: entries[i - 1]!.receipt_hash })
    return entries
  }
  t.same(verdict(resigned({})), [])
  t.same(verdict(resigned({ serial: 3 })), ['serials'], 'a serial twice')
  t.same(verdict(resigned({ prev_hash: sha256('elsewhere') })), ['links'])
  t.same(verdict(resigned({ ts_ms: 1_795_000_000_000 })), ['times'], 'a step back in time')
  t.same(verdict(resigned({ ts_ms: 1_795_000_000_001 })), [], 'time may stand still')
  t.same(verdict(resigned({ ts_utc: '2026-01-01T00:00:00Z' })), ['attested_times'])
  t.same(verdict(resigned({ key_id: 9 })), ['key_changes', 'trusted_keys', 'signatures'])

  const first = attest({ serial: 1, prev_hash: sha256('before the beginning') })
  t.same(verdict([first]), ['start'])
  const gap = [...chain().slice(0, 2), ...chain().slice(3)]
  t.same(verdict(gap), ['serials', 'links'])
  t.same(verdict(chain().reverse()), ['serials', 'links', 'times'])
  const forked = attest({ ...withoutTime(chain()[3]!), label: 'another history' })
  t.same(verdict([...chain().slice(0, 3), forked], { head: point(chain()[3]!) }), ['head'])
})

t.test('a change after signing names the serial', async (t) => {
  const chain = issueChain(4)
  chain[2]!.subject_sha256 = sha256('another subject')
  const verification = verifyChain(chain, { keys })
  t.same(failed(verification), ['receipt_hashes', 'signatures'])
  t.match(detail(verification, 'signatures'), /^serial 3: /)
  t.match(detail(verification, 'receipt_hashes'), /^serial 3: /)
})

t.test('the last signature covers what is before it, but no signature before it', async (t) => {
  const changed = issueChain(4)
  changed[1]!.label = 'changed'
  t.same(verdict(changed, { signatures: 'last' }), ['receipt_hashes'])
  const unsigned = issueChain(4)
  unsigned[1]!.sig_ed25519_hex = '0'.repeat(128)
  t.same(verdict(unsigned), ['signatures'])
  const verification = verifyChain(unsigned, { keys, signatures: 'last' })
  t.same(failed(verification), [])
  t.match(detail(verification, 'signatures'), /only the last/)
  const headless = issueChain(4)
  headless[3]!.sig_ed25519_hex = '0'.repeat(128)
  t.same(verdict(headless, { signatures: 'last' }), ['signatures'])
})

t.test('a value that is no chain fails with a named check and never throws', async (t) => {
  const afterShape = NAMES.slice(NAMES.indexOf('shape'))
  for (const value of [[], null, {}, 'chain', [null], [{}], [attest(), 1]]) t.same(verdict(value), afterShape)
  const lone = issueChain(2)
  lone[1]!.label = '\ud83d'
  t.same(verdict(lone), ['well_formed_unicode', ...afterShape])
})

function withoutTime({ ts_utc: _time, ...attestation }: Attestation): Partial<Attestation> {
  return attestation
}
