// Keys that are trusted because a trusted key introduced them, and those that are not.
import t from 'tap'
import { noteFault, readVerifierKeys } from '../../client/chain/checkpoint.ts'
import type { ListedKey } from '../../client/chain/rotation.ts'
import { type PinnedKey, trustIntroduced, verifyAttestation, verifyReceipt } from '../../client/verification.ts'
import { referenceTree } from '../receipts/rfc6962.ts'
import { jcs, sha256 } from './issuer.ts'
import {
  CHECKPOINT_KEY,
  type IssuerKey,
  issueCheckpoint,
  issueLog,
  issueReceipt,
  issuerKey,
  keyRecord,
  VKEY,
  verifierKey,
} from './log-issuer.ts'
import { smallOrderKey } from './signatures.ts'

const { chain, keys, introductions } = issueLog([3, 2, 2])
const pin = (index: number): PinnedKey => ({ key_id: keys[index]!.key_id, pubkey_hex: keys[index]!.pubkey_hex })
/** As the service lists them. */
const published: ListedKey[] = keys.map(({ key_id, pubkey_hex }, index) => ({
  key_id,
  pubkey_hex,
  use: 'receipt',
  status: index === 2 ? 'active' : 'retired',
  introduction: introductions[index - 1] ?? null,
}))
const idsOf = (trusted: PinnedKey[]) => trusted.map((key) => key.key_id).sort()

t.test('from the first key all others follow, each for its own serials', async (t) => {
  const trusted = trustIntroduced(published, [pin(0)])
  t.match(trusted, [
    { key_id: 1, status: 'retired', last_serial: 4 },
    { key_id: 3, status: 'retired', first_serial: 5, last_serial: 7 },
    { key_id: 4, status: 'active', first_serial: 8, last_serial: null },
  ])
  for (const receipt of chain)
    t.equal(verifyAttestation(receipt, { keys: trusted }).ok, true, `serial ${receipt.serial}`)
  t.same(trustIntroduced(published.toReversed(), [pin(0)]), trusted, 'in any order')
})

t.test('a key signs nothing outside its serials', async (t) => {
  const trusted = trustIntroduced(published, [pin(0)])
  for (const [key, serial] of [
    [keys[0]!, 5],
    [keys[1]!, 4],
    [keys[1]!, 8],
    [keys[2]!, 7],
  ] as const) {
    const { checks } = verifyAttestation(issueReceipt({ serial }, key), { keys: trusted })
    t.match(
      checks.find((check) => !check.ok),
      { name: 'trusted_key', detail: /not in force/ },
      `key ${key.key_id}, ${serial}`,
    )
  }
})

t.test('a pin introduces later keys, never earlier ones', async (t) => {
  t.same(idsOf(trustIntroduced(published, [pin(1)])), [3, 4])
  t.same(idsOf(trustIntroduced(published, [pin(2)])), [4])
  t.same(idsOf(trustIntroduced([], [pin(0)])), [1])
})

t.test('the spelling of a pin makes no difference', async (t) => {
  const upper = { ...pin(0), pubkey_hex: pin(0).pubkey_hex.toUpperCase() }
  const trusted = trustIntroduced(published, [upper, pin(0)])
  t.same(
    trusted.map(({ key_id, last_serial }) => [key_id, last_serial]),
    [
      [1, 4],
      [1, 4],
      [3, 7],
      [4, null],
    ],
    'each spelling ends where the key ends',
  )
  const next = { ...pin(1), pubkey_hex: pin(1).pubkey_hex.toUpperCase() }
  t.match(trustIntroduced(published, [pin(0), next])[1], { key_id: 3, first_serial: 5, last_serial: 7 })
  const elsewhere = { key_id: 1, pubkey_hex: issuerKey(9).pubkey_hex }
  t.match(trustIntroduced(published, [elsewhere, pin(0)]), [{ status: undefined }, { status: 'retired' }])
})

t.test('a key that the service calls compromised is not trusted, nor what it introduced', async (t) => {
  const good = (serial: number, trusted: PinnedKey[]) => verifyAttestation(chain[serial - 1]!, { keys: trusted }).ok
  const calling = (index: number) =>
    published.map((key, at) => (at === index ? { ...key, status: 'compromised' } : key))
  const second = trustIntroduced(calling(1), [pin(0)])
  t.same([good(1, second), good(5, second), good(8, second)], [true, false, false])
  t.same(good(1, trustIntroduced(calling(0), [pin(0)])), false)
})

t.test('a hostile list of keys crashes nothing and takes bounded time', async (t) => {
  const introduction = published[1]!.introduction!
  const lists = [
    [{ key_id: 9, pubkey_hex: smallOrderKey, use: 'receipt', introduction }],
    [{ ...published[1], use: '\ud800', introduction: { ...introduction, label: '\ud800-key' } }],
    [{ ...published[1], introduction: { ...introduction, label: '\ud800' } }],
    [{ ...published[1], status: {} }],
  ]
  for (const list of lists) t.doesNotThrow(() => trustIntroduced(list, [pin(0)]))
  // Introduced correctly, but no signature can be valid under this key.
  const subject_sha256 = sha256(jcs(keyRecord({ ...issuerKey(9), pubkey_hex: smallOrderKey }, 5)))
  const weak = issueReceipt({ ...introduction, subject_sha256 }, keys[0]!)
  const list = [{ key_id: 9, pubkey_hex: smallOrderKey, use: 'receipt', introduction: weak }]
  t.same(idsOf(trustIntroduced(list, [pin(0)])), [1])
})

t.test('a checkpoint key that is trusted signs beside the pinned verifier key', async (t) => {
  const next = issuerKey(9)
  const trusted = { key_id: 9, pubkey_hex: next.pubkey_hex, use: 'checkpoint' }
  const fault = (signers: IssuerKey[], beside: PinnedKey[]) =>
    noteFault(issueCheckpoint(chain, signers), readVerifierKeys(VKEY, beside))
  t.equal(fault([CHECKPOINT_KEY], []), null)
  t.equal(fault([next], [trusted]), null)
  t.equal(fault([next, CHECKPOINT_KEY], [trusted]), null)
  t.match(fault([next], []), /not signed by the pinned key/)
  t.match(fault([next], [{ ...trusted, use: 'receipt' }]), /not signed/)
  t.match(fault([next], [{ ...trusted, status: 'compromised' }]), /not signed/)
  const disowned = { key_id: 2, pubkey_hex: CHECKPOINT_KEY.pubkey_hex, use: 'checkpoint', status: 'compromised' }
  t.match(fault([CHECKPOINT_KEY], [disowned]), /not signed/)
  const wrong = issueCheckpoint(chain, [next]).split('\n\n')[1]!
  const other = issueCheckpoint(chain, [CHECKPOINT_KEY], 3)
  t.match(noteFault(other + wrong, readVerifierKeys(VKEY, [trusted])), /wrong signature/, 'one of the two is not good')
  const crowded = issueCheckpoint(chain) + `\u2014 someone ${Buffer.alloc(68).toString('base64')}\n`.repeat(100)
  t.match(noteFault(crowded, readVerifierKeys(VKEY, [])), /more than 100 signature lines/)
})

t.test('a key that no trusted key introduces is not trusted', async (t) => {
  const [first, second, third] = published as [ListedKey, ListedKey, ListedKey]
  const other = issuerKey(9)
  const introduction = second.introduction!
  const subject_sha256 = sha256(jcs(keyRecord(other, 5)))
  const lists: [why: string, list: unknown][] = [
    ['no introduction', [first, { ...second, introduction: null }]],
    ['an introduction of another key', [first, { ...second, pubkey_hex: other.pubkey_hex }]],
    ['the key id of another', [first, { ...second, key_id: 9 }]],
    ['changed after it was signed', [first, { ...second, introduction: { ...introduction, label: 'x' } }]],
    ['signed by a key nobody knows', [first, { ...second, introduction: issueReceipt({ ...introduction }, other) }]],
    [
      'made for an account that had the digest attested',
      [
        {
          ...second,
          key_id: 9,
          pubkey_hex: other.pubkey_hex,
          introduction: issueReceipt({ ...introduction, subject_sha256, requested_by: 'mallory' }, keys[0]!),
        },
      ],
    ],
    ['for another use', [{ ...second, use: 'checkpoint' }]],
    ['a link is missing', [first, third]],
    ['not a list', { keys: published }],
    ['not keys', [null, 7, 'key', {}, { ...second, introduction: 'yes' }]],
  ]
  for (const [why, list] of lists) t.same(idsOf(trustIntroduced(list, [pin(0)])), [1], why)
})

t.test('a retired key introduces no other key', async (t) => {
  const other = issuerKey(9)
  const subject_sha256 = sha256(jcs(keyRecord(other, 12)))
  const late = issueReceipt(
    { serial: 11, subject_sha256, requested_by: 'key-rotation', label: 'receipt-key' },
    keys[0]!,
  )
  const list = [...published, { key_id: 9, pubkey_hex: other.pubkey_hex, use: 'receipt', introduction: late }]
  t.same(idsOf(trustIntroduced(list, [pin(0)])), [1, 3, 4])
})

t.test('a key of another use is introduced by a receipt too', async (t) => {
  const other = issuerKey(9)
  const subject_sha256 = sha256(jcs(keyRecord(other, null, 'lease')))
  const introduction = issueReceipt(
    { serial: 3, subject_sha256, requested_by: 'key-rotation', label: 'lease-key' },
    keys[0]!,
  )
  const trusted = trustIntroduced([{ key_id: 9, pubkey_hex: other.pubkey_hex, use: 'lease', introduction }], [pin(0)])
  t.match(trusted[1], { key_id: 9, use: 'lease', first_serial: null })
  t.not(trusted[0]?.status, 'retired', 'and ends no receipt key')
})

t.test('a receipt with its proof', async (t) => {
  const tree = referenceTree(chain.map((one) => Buffer.from(one.receipt_hash, 'hex')))
  const size = chain.length
  const head = { tree_size: size, root_hash: tree.root(size).toString('hex') }
  const receipt = (serial: number, of = size) => ({
    attestation: chain[serial - 1]!,
    inclusion: {
      leaf_index: serial - 1,
      tree_size: of,
      hashes: tree.path(serial - 1, of).map((hash) => hash.toString('hex')),
    },
    checkpoint: issueCheckpoint(chain),
  })
  const trusted = trustIntroduced(published, [pin(0)])
  const failed = (value: unknown, options = {}) => {
    const { ok, checks } = verifyReceipt(value, { keys: trusted, vkey: VKEY, tree: head, ...options })
    t.equal(
      ok,
      checks.every((check) => check.ok),
    )
    return checks.filter((check) => !check.ok).map(({ name }) => name)
  }
  for (const { serial } of chain) t.same(failed(receipt(serial)), [], `serial ${serial}`)
  const details = (value: unknown, options = {}) =>
    verifyReceipt(value, { keys: trusted, ...options })
      .checks.map(({ detail }) => detail)
      .filter(Boolean)
  t.match(details(receipt(2)), [/signature was not checked/, /no tree was given/])
  const older = { tree_size: 5, root_hash: tree.root(5).toString('hex') }
  t.same(failed(receipt(2, 5), { tree: older }), [], 'into a tree that was pinned before')
  t.match(details(receipt(2, 5), { tree: older, vkey: VKEY }), [/leads to the tree of 5.*, but to the given one$/])
  // Without that tree, invented hashes also give a valid path.
  const madeUp = { ...receipt(2), inclusion: { leaf_index: 1, tree_size: 2, hashes: [sha256('made up')] } }
  for (const value of [receipt(2, 5), madeUp]) t.same(failed(value, { tree: undefined }), ['inclusion'])
  const good = receipt(4)
  const bad: [string[], unknown, object?][] = [
    [
      ['inclusion', 'pinned_tree'],
      { ...good, inclusion: { ...good.inclusion, hashes: good.inclusion.hashes.toReversed() } },
    ],
    [['inclusion', 'pinned_tree'], { ...good, inclusion: { ...good.inclusion, hashes: [] } }],
    [['inclusion', 'pinned_tree'], { ...good, inclusion: receipt(5).inclusion }],
    [['inclusion', 'pinned_tree'], { ...good, attestation: chain[4]! }],
    [['inclusion'], { ...good, checkpoint: issueCheckpoint(chain.toReversed()) }],
    [['inclusion', 'checkpoint'], { ...good, checkpoint: 'nonsense' }],
    [['checkpoint'], { ...good, checkpoint: issueCheckpoint(chain, [issuerKey(55)]) }],
    [['checkpoint'], good, { vkey: verifierKey(issuerKey(55)) }],
    [['pinned_tree'], good, { tree: { ...head, root_hash: '0'.repeat(64) } }],
    [['inclusion', 'pinned_tree'], receipt(4, 6)],
    [
      ['signature', 'receipt_hash', 'inclusion', 'pinned_tree'].slice(0, 2),
      { ...good, attestation: { ...good.attestation, label: 'x' } },
    ],
  ]
  for (const [names, value, options] of bad) t.same(failed(value, options), names)
  t.ok(failed({ ...good, more: 1 }).includes('shape'), 'with something beside it that nothing proves')
  t.ok(failed({ ...good, inclusion: { ...good.inclusion, hashes: ['x'] } }).includes('shape'))
  t.throws(() => verifyReceipt(good, { keys: trusted, vkey: 'nonsense' }), TypeError)
  t.equal(verifierKey(CHECKPOINT_KEY), VKEY)
})
