import { verify } from 'node:crypto'
import t from 'tap'
import { type Verification, type VerificationResult, verifyResult } from '../../client/verification.ts'
import type { CompletedResult } from '../../server/interface/result.ts'
import { attest, type Forgery, issueResult, jcs, keys, pubkeyHex, publicKey, SEED, sha256 } from './issuer.ts'
import { smallOrderKey, torsionSignature, zip215Signature } from './signatures.ts'
import { change, drop, leaves, members, other } from './tampering.ts'

// The types of the service's answers are exactly those of the client; a difference does not compile.
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
const sameType: Same<VerificationResult, CompletedResult> = true

const NAMES = [
  'plain_json',
  'well_formed_unicode',
  'shape',
  'trusted_key',
  'signature',
  'receipt_hash',
  'attested_time',
  'purchase_attestation',
  'subject_sha256',
  'canonical_envelope',
  'result_sha256',
  'envelope_agrees',
  'text_sha256',
  'evidence_quotes',
  'evidence_digests',
  'literal_scope_only_mentions',
  'supports_has_support',
  'contradicts_has_contradiction',
  'mixed_has_both',
  'bounded_observation',
  'confidence_null',
  'publisher_unknown',
]
const AFTER_SHAPE = NAMES.slice(NAMES.indexOf('shape'))

const failed = (verification: Verification) => verification.checks.filter(({ ok }) => !ok).map(({ name }) => name)
const verdict = (result: unknown) => failed(verifyResult(result, { keys }))

t.test('a valid result passes every check, named and in order', async (t) => {
  t.ok(sameType)
  const { ok, checks } = verifyResult(issueResult(), { keys })
  t.same(failed({ ok, checks }), [])
  t.equal(ok, true)
  t.same(
    checks.map(({ name }) => name),
    NAMES,
  )
})

t.test('the order of members and the route through JSON text make no difference', async (t) => {
  const { receipt, ...rest } = issueResult()
  const shuffled = Object.fromEntries([['receipt', receipt], ...Object.entries(rest).reverse()])
  t.same(verdict(JSON.parse(JSON.stringify(shuffled, null, 2))), [])
})

t.test('changing any single leaf fails', async (t) => {
  const paths = leaves(issueResult())
  t.ok(paths.length > 90, `${paths.length} leaves`)
  for (const path of paths) {
    const result = issueResult()
    change(result, path, other)
    const name = path.join('.')
    // No signature covers the note for people, and nothing may depend on it.
    if (name === 'receipt.verification') t.same(verdict(result), [], name)
    else t.not(verdict(result).length, 0, name)
  }
})

t.test('dropping any single member fails', async (t) => {
  for (const path of members(issueResult())) {
    const result = issueResult()
    drop(result, path)
    t.not(verdict(result).length, 0, path.join('.'))
  }
})

t.test('an added member fails, in the receipt too', async (t) => {
  const places = ['', 'source', 'evidence.0', 'payment', 'receipt', 'receipt.envelope', 'receipt.attestation']
  for (const place of [...places, 'receipt.envelope.payment']) {
    const result = issueResult()
    const path = place === '' ? [] : place.split('.')
    Object.assign(
      path.reduce<object>((at, name) => at[name as keyof typeof at], result),
      { extra: 1 },
    )
    t.not(verdict(result).length, 0, `in ${place || 'the result'}`)
  }
})

t.test('a change in transit fails the check of what was changed', async (t) => {
  const cases: [string, unknown, string[]][] = [
    ['claim', 'Another claim', ['result_sha256']],
    ['claim_support', 'supports', ['result_sha256']],
    ['explanation', '', ['result_sha256']],
    ['served_at', '2026-11-20T09:00:02.501Z', ['result_sha256']],
    ['limits.fixture', false, ['result_sha256']],
    ['source.content_sha256', '0'.repeat(64), ['result_sha256', 'evidence_digests']],
    ['source.text_sha256', '0'.repeat(64), ['result_sha256', 'text_sha256', 'evidence_digests']],
    ['source.normalized_text', 'x', ['result_sha256', 'text_sha256', 'evidence_quotes']],
    ['evidence.0.quote', 'the bridge opened in 1932.', ['result_sha256', 'evidence_quotes']],
    ['evidence.0.stance', 'mentions', ['result_sha256', 'mixed_has_both']],
    ['evidence.1.text_sha256', '0'.repeat(64), ['result_sha256', 'evidence_digests']],
    ['confidence', 0.9, ['result_sha256', 'confidence_null']],
    ['source_identity.publisher_identity', 'Example', ['result_sha256', 'publisher_unknown']],
    ['request_id', '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c', ['result_sha256', 'envelope_agrees']],
    ['payment.transaction', '0x1', ['result_sha256', 'envelope_agrees']],
    ['receipt.envelope.issued_at', '2026-11-20T09:00:04Z', ['canonical_envelope']],
    ['receipt.envelope.result_sha256', '0'.repeat(64), ['canonical_envelope', 'result_sha256']],
    ['receipt.envelope.payment.price_usd', '0.02', ['canonical_envelope', 'envelope_agrees']],
    ['receipt.attestation.serial', 43, ['signature', 'receipt_hash']],
    ['receipt.attestation.label', 'x', ['signature', 'receipt_hash', 'purchase_attestation']],
    ['receipt.attestation.receipt_hash', '0'.repeat(64), ['receipt_hash']],
    ['receipt.attestation.sig_ed25519_hex', '0'.repeat(128), ['signature']],
    ['receipt.attestation.subject_sha256', '0'.repeat(64), ['signature', 'receipt_hash', 'subject_sha256']],
    ['receipt.attestation.ts_ms', 1, ['signature', 'receipt_hash', 'attested_time']],
    ['receipt.attestation.key_id', 8, ['trusted_key', 'signature', 'receipt_hash']],
  ]
  for (const [name, value, expected] of cases) {
    const result = issueResult()
    change(result, name.split('.'), () => value)
    t.same(verdict(result), expected, name)
  }
})

t.test('a result that is wrong but properly signed fails exactly the check that is about it', async (t) => {
  const zeros = '0'.repeat(64)
  const stances = (...wanted: string[]) => ({
    result: (r: Parameters<NonNullable<Forgery['result']>>[0]) => {
      r.evidence = r.evidence.map((item, i) => ({ ...item, stance: (wanted[i] ?? 'mentions') as 'mentions' }))
    },
  })
  const saying = (claim_support: VerificationResult['claim_support'], ...wanted: string[]): Forgery => ({
    result: (r) => {
      stances(...wanted).result(r)
      r.claim_support = claim_support
    },
  })
  const literal = (claim_support: VerificationResult['claim_support'], ...wanted: string[]): Forgery => ({
    result: (r) => {
      saying(claim_support, ...wanted).result?.(r)
      r.assessment_scope = 'literal_quotation_only'
    },
  })
  const cases: [string, Forgery, string[]][] = [
    ['supports, and it does', saying('supports', 'supports'), []],
    ['supports, by mentions only', saying('supports'), ['supports_has_support']],
    ['contradicts, and it does', saying('contradicts', 'contradicts'), []],
    ['contradicts, by support only', saying('contradicts', 'supports'), ['contradicts_has_contradiction']],
    ['mixed, one side only', saying('mixed', 'supports', 'supports'), ['mixed_has_both']],
    ['mixed, the other side only', saying('mixed', 'contradicts'), ['mixed_has_both']],
    ['insufficient evidence', saying('insufficient_evidence', 'supports'), []],
    ['literal, not assessed', literal('not_assessed'), []],
    ['literal, insufficient', literal('insufficient_evidence'), []],
    ['literal, with a verdict', literal('supports', 'supports'), ['literal_scope_only_mentions']],
    ['literal, with a stance', literal('not_assessed', 'mentions', 'supports'), ['literal_scope_only_mentions']],
    ['not settled', { result: (r) => Object.assign(r.payment, { status: 'pending' }) }, ['bounded_observation']],
    ['with an error', { result: (r) => Object.assign(r, { error: {} }) }, ['bounded_observation']],
    ['confidence', { result: (r) => Object.assign(r, { confidence: 1 }) }, ['confidence_null']],
    [
      'publisher',
      { result: (r) => Object.assign(r.source_identity, { publisher_identity: 'Example' }) },
      ['publisher_unknown'],
    ],
    [
      'text digest',
      {
        result: (r) => {
          r.source.text_sha256 = zeros
          for (const item of r.evidence) item.text_sha256 = zeros
        },
      },
      ['text_sha256'],
    ],
    [
      'evidence of another page',
      { result: (r) => Object.assign(r.evidence[1]!, { source_sha256: zeros }) },
      ['evidence_digests'],
    ],
    ['envelope of another result', { envelope: (e) => Object.assign(e, { result_sha256: zeros }) }, ['result_sha256']],
    ['envelope of another request', { envelope: (e) => Object.assign(e, { request_id: 'x' }) }, ['envelope_agrees']],
    ['attestation of another thing', { attestation: { subject_sha256: zeros } }, ['subject_sha256']],
    ['two times', { attestation: { ts_utc: '2026-11-20T09:00:00Z' } }, ['attested_time']],
    ['unknown key', { attestation: { key_id: 8 } }, ['trusted_key', 'signature']],
    ['key in the message', { attestation: { pubkey_hex: 'ab'.repeat(32) } }, ['trusted_key', 'signature']],
  ]
  for (const [name, forgery, expected] of cases) t.same(verdict(issueResult(forgery)), expected, name)
})

t.test('an account that had an invented envelope attested has not bought anything', async (t) => {
  const handle = issueResult({ attestation: { requested_by: 'mallory' } })
  t.same(verdict(handle), ['purchase_attestation'])
  const labelled = issueResult({ attestation: { label: 'source-verification' } })
  t.same(verdict(labelled), ['purchase_attestation'])
})

t.test('offsets count code points', async (t) => {
  const shifted = (by: number) => issueResult({ result: (r) => moveAll(r.evidence, by) })
  t.same(verdict(shifted(0)), [])
  // One more is where UTF-16 counting would put them, behind the emoji.
  for (const by of [1, -1]) t.same(verdict(shifted(by)), ['evidence_quotes'], `moved by ${by}`)
  const beyond = issueResult({ result: (r) => Object.assign(r.evidence[0]!, { end: 100_000 }) })
  t.same(verdict(beyond), ['evidence_quotes'])
  const reversed = issueResult({ result: (r) => Object.assign(r.evidence[0]!, { start: 9, end: 3 }) })
  t.same(verdict(reversed), ['evidence_quotes'])
  const atEnd = issueResult({
    result: (r) => {
      const length = [...r.source.normalized_text].length
      Object.assign(r.evidence[0]!, { quote: 'End', start: length - 3, end: length })
    },
  })
  t.same(verdict(atEnd), [])
})

t.test('the canonical envelope has one spelling', async (t) => {
  const respell = (spell: (base64: string) => string) => {
    const result = issueResult()
    result.receipt.canonical_envelope_base64 = spell(result.receipt.canonical_envelope_base64)
    return verdict(result)
  }
  t.same(
    respell((text) => text),
    [],
  )
  for (const spell of [
    (text: string) => `${text}\n`,
    (text: string) => `${text.slice(0, 8)} ${text.slice(8)}`,
    (text: string) => `${text}====`,
    (text: string) => `*${text}`,
  ])
    t.same(respell(spell), ['subject_sha256', 'canonical_envelope'])

  // Attested bytes with the same value as the envelope, but not in canonical form.
  const result = issueResult()
  const spaced = Buffer.from(JSON.stringify(result.receipt.envelope, null, 1))
  result.receipt.canonical_envelope_base64 = spaced.toString('base64')
  result.receipt.attestation = attest({ subject_sha256: sha256(spaced) })
  t.same(verdict(result), ['canonical_envelope'])
})

t.test('a string that is not well-formed Unicode fails by name', async (t) => {
  const places = ['claim', 'explanation', 'source.normalized_text', 'receipt.attestation.label', 'receipt.verification']
  for (const place of places) {
    const result = issueResult()
    change(result, place.split('.'), () => 'a\ud800b')
    const { checks, ok } = verifyResult(result, { keys })
    t.equal(ok, false)
    const { detail } = checks.find(({ name }) => name === 'well_formed_unicode')!
    t.match(detail, `/${place.replaceAll('.', '/')} is not well-formed`)
    t.same(failed({ ok, checks }), ['well_formed_unicode', ...AFTER_SHAPE], place)
  }
  const named = { ...issueResult(), '\udc00': 1 }
  t.same(verdict(named), ['well_formed_unicode', ...AFTER_SHAPE])
  // In the wrong order, the halves of a surrogate pair are two lone surrogates.
  t.same(verdict({ ...issueResult(), claim: '\ude00\ud83d' }), ['well_formed_unicode', ...AFTER_SHAPE])
})

t.test('a value that is no result fails with a named check and never throws', async (t) => {
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  for (const value of [undefined, () => 1, new Date(0), cyclic, Number.NaN, { a: 1n }, [undefined]])
    t.same(verdict(value), ['plain_json', ...AFTER_SHAPE])
  for (const value of [null, 1, 'text', [], {}, { receipt: null }, { ...issueResult(), receipt: [] }])
    t.same(verdict(value), AFTER_SHAPE)
  let deep: unknown = 1
  for (let i = 0; i < 20_000; i++) deep = [deep]
  t.same(verdict(deep), ['plain_json', ...AFTER_SHAPE])
  for (const path of leaves(issueResult()))
    for (const value of [null, 0, -1, '', [], {}, true]) {
      const result = issueResult()
      change(result, path, () => value)
      t.doesNotThrow(() => verifyResult(result, { keys }), path.join('.'))
    }
})

t.test('keys', async (t) => {
  const result = issueResult()
  const attempt = (pinned: Parameters<typeof verifyResult>[1]['keys']) => failed(verifyResult(result, { keys: pinned }))
  const key = keys[0]!
  const another = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
  t.same(attempt([{ key_id: 1, pubkey_hex: another }, key]), [], 'among others')
  t.same(attempt([{ ...key, pubkey_hex: pubkeyHex.toUpperCase() }]), [], 'in upper case')
  t.same(attempt([]), ['trusted_key', 'signature'], 'none')
  t.same(attempt([{ ...key, pubkey_hex: another }]), ['trusted_key', 'signature'], 'another under the same id')
  t.same(attempt([{ ...key, key_id: 6 }]), ['trusted_key', 'signature'], 'the same under another id')
  t.same(attempt([{ ...key, use: 'receipt', status: 'active', first_serial: 42, last_serial: 41 }]), [], 'active')
  t.same(attempt([{ ...key, use: 'lease' }]), ['trusted_key', 'signature'], 'a key for something else')
  t.same(attempt([{ ...key, first_serial: 43 }]), ['trusted_key', 'signature'], 'not yet in force')
  t.same(attempt([{ ...key, status: 'retired', last_serial: 41 }]), ['trusted_key', 'signature'], 'no longer in force')
  t.same(attempt([{ ...key, status: 'retired', last_serial: 42 }]), [], 'still in force')
  t.same(attempt([{ ...key, status: 'compromised', last_serial: 50 }]), ['trusted_key', 'signature'], 'compromised')
  t.same(
    attempt([{ ...key, status: 'retired', last_serial: null }]),
    ['trusted_key', 'signature'],
    'ended who knows when',
  )
  for (const status of ['', 'next', 'constructor', '__proto__'])
    t.same(attempt([{ ...key, status, last_serial: 50 }]), ['trusted_key', 'signature'], `of the status ${status}`)
  const typed = [{ key_id: '7' }, { first_serial: '1' }, { last_serial: {} }, { status: 1 }, { use: [] }]
  for (const malformed of [null, 7, {}, ...typed.map((members) => ({ ...key, ...members }))])
    t.throws(() => attempt([key, malformed as never]), { name: 'TypeError', message: /^The pinned keys: \/1/ })
  for (const pubkey_hex of ['', 'ab', `${pubkeyHex}00`, 'zz'.repeat(32), smallOrderKey])
    t.throws(() => attempt([{ key_id: 7, pubkey_hex }]), TypeError, `pinning ${pubkey_hex}`)
})

t.test('a crafted signature that others refuse is refused', async (t) => {
  for (const [name, craft] of Object.entries({ zip215Signature, torsionSignature })) {
    const result = issueResult()
    const { receipt_hash: _hash, sig_ed25519_hex: signature, ...signed } = result.receipt.attestation
    const message = Buffer.from(jcs(signed))
    t.ok(verify(null, message, publicKey, Buffer.from(signature, 'hex')), 'OpenSSL accepts the honest one')
    const crafted = craft(message, SEED)
    t.notOk(verify(null, message, publicKey, crafted), `OpenSSL refuses ${name}`)
    result.receipt.attestation.sig_ed25519_hex = crafted.toString('hex')
    t.same(verdict(result), ['signature'], name)
  }
})

function moveAll(evidence: VerificationResult['evidence'], by: number): void {
  for (const item of evidence) {
    item.start += by
    item.end += by
  }
}
