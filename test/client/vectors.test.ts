// The vectors for authors of other verifiers: the stored files are the output of their script, and both of our signature
// checks, the client's own (noble) and OpenSSL's, agree with every case.
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import t from 'tap'
import { checkpointFault, readCheckpoint, readVerifierKey } from '../../client/chain/checkpoint.ts'
import { TreeGrowth } from '../../client/chain/merkle.ts'
import { isSigned } from '../../client/chain/signature.ts'
import { verifyDocument } from '../../client/document.ts'
import { canonicalJson, parseJson } from '../../client/json.ts'
import {
  isContinued,
  isIncluded,
  type Verification,
  verifyAttestation,
  verifyChain,
  verifyExport,
  verifyReceipt,
  verifyResult,
} from '../../client/verification.ts'
import { getKeys } from '../../server/receipts/chain-operations.ts'
import * as server from '../../server/receipts/format.ts'
import type { attestationVectors } from '../vectors/attestation.ts'
import type { canonicalJsonVectors } from '../vectors/canonical-json.ts'
import type { chainVectors } from '../vectors/chain.ts'
import type { claimsVectors } from '../vectors/claims.ts'
import { CLAIMS_SCHEMA, claimsSchema } from '../vectors/claims-schema.ts'
import type { exportVectors } from '../vectors/export.ts'
import { EXPORT, vectors } from '../vectors/generate.ts'
import type { logVectors } from '../vectors/log.ts'
import type { receiptVectors } from '../vectors/receipt.ts'
import type { resultVectors } from '../vectors/result.ts'
import type { checkpointVectors, merkleVectors } from '../vectors/tree.ts'
import { jcs, sha256 } from './issuer.ts'
import { chunks, openssl } from './tampering.ts'

const read = (name: string) => readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8')
const load = <T>(name: string) => JSON.parse(read(name)) as T
const failing = ({ checks }: Verification) => checks.filter(({ ok }) => !ok).map(({ name }) => name)

for (const [name, content] of Object.entries(vectors))
  t.test(`${name} is what the script makes`, async (t) => {
    t.same(load(name), JSON.parse(JSON.stringify(content)))
  })

t.test(`${EXPORT.name} is what the script makes`, async (t) => {
  t.equal(read(EXPORT.name), EXPORT.text)
})

t.test('the schema of a result of several claims is that of the service, and takes the good ones alone', async (t) => {
  const schema = load<object>(CLAIMS_SCHEMA)
  t.same(schema, JSON.parse(JSON.stringify(claimsSchema)))
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const isValid = ajv.compile(schema)
  const { cases } = load<typeof claimsVectors>('claims.json')
  // A schema sees neither digests nor quotes; these it does see.
  const seen = ['literal_scope_only_mentions', 'supports_has_support']
  for (const { name, result, fails } of cases) {
    const isRefused = fails.some((check) => seen.includes(check))
    t.equal(isValid(result), !isRefused, `${name}: ${ajv.errorsText(isValid.errors)}`)
  }
})

t.test('canonical JSON, by three implementations', async (t) => {
  const { cases, refused } = load<typeof canonicalJsonVectors>('canonical-json.json')
  for (const { name, input, canonical, sha256: digest } of cases) {
    const value = parseJson(input)
    for (const [by, text] of Object.entries({
      client: canonicalJson(value),
      server: server.canonicalJson(value),
      test: jcs(value),
    }))
      t.equal(text, canonical, `${name}, by the ${by}`)
    t.equal(sha256(canonical), digest, name)
  }
  for (const { name, input_base64, check } of refused) {
    const verdict = await verifyDocument(chunks(Buffer.from(input_base64, 'base64')), { keys: [] })
    t.equal(failing(verdict)[0], check, name)
  }
})

for (const [by, signatureCheck] of Object.entries({ noble: isSigned, OpenSSL: openssl })) {
  t.test(`attestations, by ${by}`, async (t) => {
    const { pins, cases } = load<typeof attestationVectors>('attestation.json')
    for (const { name, attestation, fails, ...more } of cases) {
      const keys = ('pins' in more && more.pins) || pins
      t.same(failing(verifyAttestation(attestation, { keys, signatureCheck })), fails, name)
      if (!('canonical' in more)) continue
      const { receipt_hash, sig_ed25519_hex: _signature, ...signed } = attestation as never as Record<string, unknown>
      t.equal(canonicalJson(signed), more.canonical, name)
      t.equal(sha256(more.canonical!), receipt_hash, name)
    }
  })

  t.test(`results, by ${by}`, async (t) => {
    const { pins, cases } = load<typeof resultVectors>('result.json')
    for (const { name, result, fails, ...more } of cases) {
      t.same(failing(verifyResult(result, { keys: pins, signatureCheck })), fails, name)
      if (!('canonical_result' in more)) continue
      const { envelope, attestation } = (result as { receipt: Record<string, Record<string, unknown>> }).receipt
      t.equal(sha256(more.canonical_result!), envelope!.result_sha256, name)
      t.equal(sha256(more.canonical_envelope!), attestation!.subject_sha256, name)
    }
  })

  t.test(`results of several claims, by ${by}`, async (t) => {
    const { pins, cases } = load<typeof claimsVectors>('claims.json')
    for (const { name, result, fails, ...more } of cases) {
      t.same(failing(verifyResult(result, { keys: pins, signatureCheck })), fails, name)
      if (!('canonical_result' in more)) continue
      const { envelope } = (result as { receipt: Record<string, Record<string, unknown>> }).receipt
      t.equal(sha256(more.canonical_result!), envelope!.result_sha256, name)
    }
  })

  t.test(`receipts, by ${by}`, async (t) => {
    const { pins, vkey, cases } = load<typeof receiptVectors>('receipt.json')
    for (const { name, receipt, fails, ...more } of cases)
      t.same(failing(verifyReceipt(receipt, { keys: pins, vkey, signatureCheck, ...withKeys(more) })), fails, name)
  })

  t.test(`chains, by ${by}`, async (t) => {
    const { pins, cases } = load<typeof chainVectors>('chain.json')
    for (const { name, attestations, fails, ...more } of cases)
      t.same(failing(verifyChain(attestations, { keys: pins, signatureCheck, ...withKeys(more) })), fails, name)
  })

  t.test(`exports, by ${by}`, async (t) => {
    const { pins, vkey, cases } = load<typeof exportVectors>('export.json')
    for (const { name, text, fails } of cases) {
      const names = failing(await verifyDocument(chunks(text), { keys: pins, vkey, signatureCheck }))
      t.ok(
        fails.length === 0 ? names.length === 0 : names.includes(fails[0]!),
        `${name}: ${names.length > 0 ? names : 'good'}`,
      )
    }
  })

  t.test(`checkpoints, by ${by}`, async (t) => {
    const { vkey, tree, malformed_vkeys, foreign_vkey, cases } = load<typeof checkpointVectors>('checkpoint.json')
    for (const { name, note, good, ...more } of cases) {
      t.equal(checkpointFault(note, more.vkey ?? vkey, signatureCheck) === null, good, name)
      if (good && name !== 'an empty tree') t.match(readCheckpoint(note), tree, name)
    }
    t.equal(readVerifierKey(foreign_vkey).keyId, 'c74f20a3')
    for (const malformed of malformed_vkeys) t.throws(() => readVerifierKey(malformed), TypeError, malformed)
  })

  t.test(`the log, by ${by}, from one pinned key`, async (t) => {
    const log = load<typeof logVectors>('log.json')
    const { pin, vkey, head, attestations } = log
    const options = { keys: [pin], vkey, head, signatureCheck }
    t.same(failing(await verifyExport(chunks(read(EXPORT.name)), options)), [])
    t.same(failing(verifyChain(attestations, { ...options, checkpoint: log.checkpoints[20] })), [])
    t.equal(checkpointFault(log.checkpoints[10], vkey, signatureCheck), null)
    const [from, to] = [readCheckpoint(log.checkpoints[10])!, readCheckpoint(log.checkpoints[20])!]
    t.equal(isContinued(from, to, log.consistency.hashes), true)
    const lines = read(EXPORT.name).trimEnd().split('\n').slice(1)
    t.same(
      lines.map((line) => JSON.parse(line)),
      attestations,
    )
  })
}

function withKeys({ pins, ...more }: { pins?: unknown; [name: string]: unknown }) {
  return { ...more, ...(pins !== undefined && { keys: pins as never }) }
}

t.test('the keys are listed as the service lists them', async (t) => {
  const { keys } = load<typeof logVectors>('log.json')
  t.same(getKeys.output.parse(keys), keys)
})

t.test('the tree', async (t) => {
  const { leaves, roots, certificate_transparency, inclusion, consistency } = load<typeof merkleVectors>('merkle.json')
  const rootBy = (tree: TreeGrowth, hashes: string[]) => {
    for (const hash of hashes) tree.append(hash)
    return tree.head().root_hash
  }
  for (const [size, root] of Object.entries(roots))
    t.equal(rootBy(new TreeGrowth(), leaves.slice(0, Number(size))), root, `a tree of ${size}`)
  for (const [index, root] of certificate_transparency.roots.entries())
    t.equal(rootBy(new TreeGrowth(), certificate_transparency.leaves.slice(0, index + 1)), root)
  for (const { name, leaf, inclusion: proof, root_hash, good } of inclusion)
    t.equal(isIncluded(leaf, proof, { tree_size: proof.tree_size, root_hash }), good, name)
  for (const { name, from, to, hashes, good } of consistency) t.equal(isContinued(from, to, hashes), good, name)
})
