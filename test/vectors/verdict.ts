// Writes verdict.json: eleven texts, each with a claim, what the local verifier says of them, and the logits behind it. Run it after a change of
// the weights or of the procedure: `node test/vectors/verdict.ts`.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assessLocally, type LocalAssessment } from '../../workers/assessment/local/assessment.ts'
import { procedureOf } from '../../workers/assessment/local/settings.ts'
import { loadVerifier, type Verifier } from '../../workers/assessment/local/verifier.ts'
import { readVerifierFiles, settings } from '../../workers/assessment/local/weights.ts'

export interface VerdictVector {
  claim: string
  text: string
  assessment: Omit<LocalAssessment, 'reading'>
  windows: { passage: string; logits_f32_hex: string }[]
}

/** The vector of a text and a claim. */
export async function verdictVector(verifier: Verifier, text: string, claim: string): Promise<VerdictVector> {
  const { reading, ...assessment } = await assessLocally(verifier, text, claim)
  const windows = reading.windows.map(({ text: passage, logits }) => ({
    passage,
    logits_f32_hex: Buffer.from(Float32Array.from(logits).buffer).toString('hex'),
  }))
  return { claim, text, assessment, windows }
}

const KELBY = `The harbour of Kelby
The harbour of Kelby was opened in 1874 by the county engineer Agnes Moor.
It has three piers, and the longest of them is 212 metres long.
The lighthouse at the end of the longest pier burned paraffin until 1958.
Some forty fishing boats have their berths there in winter.`
const DISPUTED = `${KELBY}
A history of the county from 1960 says otherwise.
The harbour of Kelby was opened in 1891, after Agnes Moor had died.`
const BRIDGE = `The Arvel Bridge \u{1F309}
The Arvel Bridge crosses the river Tam between Orsby and Hellin. It was opened on 3 May 1911 after six years of work.
It is 412 metres long. It rests on seven stone piers and carries two lanes of road traffic.
Tolls were abolished in 1936. Crossing the Arvel Bridge has been free of charge for everyone since then.
The flood of 1954 damaged the Arvel Bridge badly, and repairs took fourteen months.`
const CHECKED = `Fact check of the week
The Arvel Bridge was opened on 3 May 1911 after six years of work.
It is 412 metres long.`
const GERMAN = `Die Arvelbrücke
Die Brücke wurde am 3. Mai 1911 nach sechs Jahren Bauzeit eröffnet und ist noch heute für den Verkehr frei.`
const CASES = [
  [KELBY, 'The harbour of Kelby was opened in 1874.'],
  [KELBY, 'The harbour of Kelby was opened in 1935.'],
  [KELBY, 'The harbour of Kelby has seven piers.'],
  [DISPUTED, 'The harbour of Kelby was opened in 1874.'],
  [KELBY, 'A ferry to Norway leaves from Kelby every morning.'],
  [KELBY, 'The lighthouse burned oil in 1950.'],
  [BRIDGE, 'Crossing the Arvel Bridge costs nothing.'],
  [BRIDGE, 'The flood of 1954 left the Arvel Bridge undamaged.'],
  [BRIDGE, 'Repairs of the Arvel Bridge after the flood of 1954 took more than a year.'],
  [CHECKED, 'The Arvel Bridge was opened in 1911.'],
  [GERMAN, 'The Arvel Bridge was opened in 1911.'],
] as const

const FILE = join(import.meta.dirname, 'verdict.json')

export function readVerdictVectors() {
  return JSON.parse(readFileSync(FILE, 'utf8')) as { weights_sha256: string; procedure: string; cases: VerdictVector[] }
}

if (import.meta.main) {
  await using verifier = await loadVerifier(readVerifierFiles())
  const cases: VerdictVector[] = []
  for (const [text, claim] of CASES) cases.push(await verdictVector(verifier, text, claim))
  const content = { weights_sha256: settings.weights_sha256, procedure: procedureOf(settings), cases }
  writeFileSync(FILE, `${JSON.stringify(content, null, 2)}\n`)
  spawnSync('biome', ['format', '--write', FILE], { stdio: 'inherit' })
}
