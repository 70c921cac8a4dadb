// What the tests of replays share: a verdict on the page of the packages, which stands for that of the verifier, and a replay with the
// pins of the issuer.

import { certificateCheck } from '../../client/commands/certificate-check.ts'
import { signatureCheck } from '../../client/commands/signature-check.ts'
import { type ReplayOptions, replayPackage } from '../../client/evidence/replay.ts'
import { compareVerdicts, recomputableIn } from '../../client/recomputation.ts'
import { openTimestampVerifier } from '../../client/timestamp.ts'
import { procedureOf } from '../../workers/assessment/local/settings.ts'
import { settings } from '../../workers/assessment/local/weights.ts'
import { pageProcedure, readPage } from '../../workers/text/page/reading.ts'
import { keys, pubkeyHex } from './issuer.ts'
import { CHECKPOINT_KEY, VKEY } from './log-issuer.ts'
import { type Issued, PAGE_TEXT, type Verdict } from './package-issuer.ts'

const CLAIM = 'The harbour of Kelby was opened in 1935.'
const QUOTE = 'The harbour of Kelby was opened in 1874 by the county engineer Agnes Moor.'
const start = [...PAGE_TEXT.slice(0, PAGE_TEXT.indexOf(QUOTE))].length

const made = {
  claim_support: 'contradicts',
  explanation: 'One sentence of the page contradicts the claim.',
  quotes: [{ quote: QUOTE, start, end: start + QUOTE.length, stance: 'contradicts' }],
  risk_flags: [],
} as const

export const verdict: Verdict = {
  ...made,
  risk_flags: [],
  claim: CLAIM,
  methodology_version: `retrieval-1 ${procedureOf(settings)}+gate-4`,
}

/** Compares as with the verifier, which itself runs in the tests of the command. */
const verdictCheck: ReplayOptions['verdictCheck'] = async (result) => {
  const given = recomputableIn(result)
  if (typeof given === 'string') throw new Error(given)
  return compareVerdicts(given, [made])
}

const defaults: ReplayOptions = {
  keys,
  vkey: VKEY,
  signatureCheck,
  certificateCheck,
  reader: { pageProcedure, readPage },
  verdictCheck,
  timestamps: { open: () => openTimestampVerifier(''), isGiven: false },
}

export async function replay(
  { packaged, result }: Pick<Issued, 'packaged'> & { result: unknown },
  options: Partial<ReplayOptions> = {},
) {
  const text = typeof result === 'string' ? result : JSON.stringify(result)
  const replayed = await replayPackage(packaged, Buffer.from(text), { ...defaults, ...options })
  const named = (state: string) => replayed.steps.filter((step) => step.state === state).map(({ name }) => name)
  return {
    ...replayed,
    failed: named('differs'),
    unchecked: named('not_checked').filter((name) => name !== 'timestamps'),
    detail: (name: string) => replayed.steps.find((step) => step.name === name)?.detail ?? '',
  }
}

/** The body of `/v1/keys` of this issuer. */
export const listedKeys = {
  keys: [
    { ...keys[0], use: 'receipt', status: 'active', pubkey_hex: pubkeyHex },
    {
      key_id: CHECKPOINT_KEY.key_id,
      use: 'checkpoint',
      status: 'active',
      pubkey_hex: CHECKPOINT_KEY.pubkey_hex,
      vkey: VKEY,
    },
  ],
}
