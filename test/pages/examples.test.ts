// The stored examples are what the service answers today: every operation is called again, and only what differs from run to
// run (identifiers, times, digests, signatures) may differ. A stale file is written anew to .tap/pages/, to be looked at and copied.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { verifyResult } from '../../client/verification.ts'
import { catalog } from '../../server/catalog.ts'
import { completedResult } from '../../server/interface/result.ts'
import type { ExampleResults } from '../../server/pages/examples/examples.ts'
import { recordExamples, recordResults } from './examples.ts'

const folder = join(import.meta.dirname, '../../server/pages/examples')
const fresh = join(import.meta.dirname, '../../.tap/pages')

function stored(name: string): unknown {
  try {
    return JSON.parse(readFileSync(join(folder, name), 'utf8'))
  } catch {
    return null
  }
}

/** Writes the new run beside the stored file, and compares the two. */
function holds(name: string, made: unknown, t: Test) {
  mkdirSync(fresh, { recursive: true })
  writeFileSync(join(fresh, name), `${JSON.stringify(made, null, 1)}\n`)
  t.same(
    masked(stored(name)),
    masked(made),
    `server/pages/examples/${name} is stale: look at .tap/pages/${name} and copy it`,
  )
}

/** Values without what no two runs have in common. */
function masked(value: unknown): unknown {
  const text = JSON.stringify(value, (name, member) => {
    // A new version of a procedure does not make an example untrue: it names its own.
    if (/^(methodology_version|parts|explanation|canonical_envelope_base64)$/.test(name)) return null
    if (typeof member === 'string' && member.startsWith('/methodology/')) return '/methodology/(version)'
    // An alert may be delivered before it is listed.
    if (/^(attempts|next_attempt_at|settled_at)$/.test(name) || member === 'pending' || member === 'delivered')
      return null
    if (typeof member === 'number' && /^ms$|_ms$|^(serial|granted|renewed|revoked|wire_bytes)$|seconds/.test(name))
      return 0
    return typeof member === 'string' ? maskText(member) : member
  })
  return JSON.parse(text)
}

function maskText(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '(time)')
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '(id)')
    .replace(/(?<![0-9A-Za-z])(0x)?[0-9a-f]{16,}(?![0-9A-Za-z])/g, '(hex)')
    .replace(/\b(ctk|whsec|whpk|msg)_[\w+/=-]+/g, '$1_(secret)')
    .replace(/\b1[0-9]{12}\b/g, '(ms)')
    .replace(/[\w+/=-]{40,}/g, '(bytes)')
}

t.test('every operation has an example, and it is true', async (t) => {
  const made = await recordExamples(catalog)
  t.same(
    Object.keys(made),
    catalog.map(({ name }) => name),
  )
  holds('examples.json', made, t)
})

t.test('the results of the front page are genuine and of this service', async (t) => {
  holds('example-results.json', await recordResults(), t)
  for (const [kind, result] of Object.entries(stored('example-results.json') as ExampleResults)) {
    t.ok(completedResult.safeParse(result).success, kind)
    const { key_id, pubkey_hex } = result.receipt.attestation
    const { ok, checks } = verifyResult(result, { keys: [{ key_id, pubkey_hex }] })
    t.ok(ok, `${kind}: ${checks.filter((check) => !check.ok).map(({ name }) => name)}`)
  }
})
