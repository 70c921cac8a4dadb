// Writes the vectors of this folder: `node test/vectors/generate.ts`. The same in every run; README.md says what they are for.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { attestationVectors } from './attestation.ts'
import { canonicalJsonVectors } from './canonical-json.ts'
import { chainVectors } from './chain.ts'
import { claimsVectors } from './claims.ts'
import { exportVectors } from './export.ts'
import { exportText, logVectors } from './log.ts'
import { receiptVectors } from './receipt.ts'
import { resultVectors } from './result.ts'
import { checkpointVectors, merkleVectors } from './tree.ts'

export const vectors: Readonly<Record<string, unknown>> = {
  'canonical-json.json': canonicalJsonVectors,
  'attestation.json': attestationVectors,
  'result.json': resultVectors,
  'claims.json': claimsVectors,
  'log.json': logVectors,
  'receipt.json': receiptVectors,
  'chain.json': chainVectors,
  'export.json': exportVectors,
  'merkle.json': merkleVectors,
  'checkpoint.json': checkpointVectors,
}

/** The log of log.json in one file, as `countersign export` writes it. */
export const EXPORT = { name: 'log.jsonl', text: exportText }

if (import.meta.main) {
  const path = (name: string) => join(import.meta.dirname, name)
  for (const [name, content] of Object.entries(vectors))
    writeFileSync(path(name), `${JSON.stringify(content, null, 2)}\n`)
  writeFileSync(path(EXPORT.name), EXPORT.text)
  spawnSync('biome', ['format', '--write', ...Object.keys(vectors).map(path)], { stdio: 'inherit' })
}
