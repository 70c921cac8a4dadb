// The technical part of a certification under FRE 902(13) and 902(14), as Markdown: what was captured and when, by which software, the
// digests, the receipts, the steps that were replayed and their outcome, and what is not shown. A person completes and signs it.
import { visible } from '../arguments.ts'
import { sha256Hex } from '../bytes.ts'
import { CONNECTIONS, MANIFEST, type ProvedReceipt } from '../evidence/manifest.ts'
import { ARCHIVE } from '../evidence/package-files.ts'
import type { Facts, Replay } from '../evidence/replay.ts'
import type { PurchaseResult } from '../result.ts'

export interface Software {
  /** Of the program that replayed, with its version. */
  name: string
  runtime: string
  /** When it replayed, by the clock of this machine. */
  at: Date
}

/** The statement as a whole text. Says in its first lines whether all steps hold. */
export function writeStatement(replay: Replay, software: Software): string {
  const facts = provedIn(replay)
  return `${[
    '# Technical statement on a captured web page',
    outcomeOf(replay),
    'This is the technical part of a certification under Rule 902(13) or 902(14) of the US Federal Rules of Evidence. A program wrote it from an evidence package and a result; it certifies nothing by itself and is not legal advice. Section 8 is left to a person.',
    '## 1. What was captured',
    capturedPart(facts),
    '## 2. By what',
    softwarePart(facts, software),
    '## 3. Digests',
    digestPart(facts),
    '## 4. Receipts and log',
    receiptPart(facts),
    '## 5. Times',
    timePart(replay),
    '## 6. The steps that were replayed',
    stepPart(replay),
    '## 7. What is not shown',
    LIMITS,
    '## 8. Certification',
    BLANKS,
  ].join('\n\n')}\n`
}

/** What the package and the result say, without what a step that does not hold was to prove. */
function provedIn({ facts, steps }: Replay): Facts {
  const holds = (name: string) => steps.some((step) => step.name === name && step.state === 'holds')
  const { result, receipts, ...others } = facts
  return {
    ...others,
    ...(holds('result_signed') && { result }),
    receipts: {
      ...(holds('manifest_in_chain') && { capture: receipts?.capture }),
      ...(holds('result_in_chain') && { result: receipts?.result }),
    },
  }
}

function outcomeOf({ ok, differs, steps }: Replay): string {
  const held = steps.filter(({ state }) => state === 'holds').length
  if (differs) {
    const failed = steps.filter(({ state }) => state === 'differs').map(({ name }) => name)
    return `**Outcome: ${failed.length} of ${steps.length} steps do not hold (${failed.join(', ')}).** What rests on them was not checked. What follows is stated only as far as its step holds.`
  }
  if (!ok)
    return `**Outcome: incomplete.** ${held} of ${steps.length} steps hold; section 6 names those that were not checked, and why.`
  const left = steps.length - held
  return `**Outcome: all ${held} steps that apply hold.**${left > 0 ? ` For ${left} more nothing was given; section 6 names them.` : ''}`
}

const UNPROVED = 'not stated, because the step for it does not hold or was not checked.'

function capturedPart({ manifest, connections, result }: Facts): string {
  return [capturePart({ manifest, connections }), result ? resultPart(result) : `The result: ${UNPROVED}`].join('\n\n')
}

function resultPart(result: PurchaseResult): string {
  const verdicts = 'claims' in result ? result.claims : [result]
  const rows = verdicts.map(({ claim, claim_support, evidence }) => [
    code(claim),
    code(claim_support),
    evidence.map(({ quote, start, end }) => `${code(quote)} (${start} to ${end})`).join('; ') || 'none',
  ])
  return [
    `The result ${code(result.request_id)} says what a program found in the text of the page, with places in code points:`,
    table(['claim', 'verdict', 'quotes'], rows),
  ].join('\n\n')
}

function capturePart({ manifest, connections }: Pick<Facts, 'manifest' | 'connections'>): string {
  if (!manifest) return `The capture: ${UNPROVED}`
  const rows = manifest.hops.map(({ url, status, body_complete }, i) => {
    const one = connections?.[i]
    const tls = one ? `${code(one.tls.protocol)}, ${code(one.tls.cipher)}` : 'not proved'
    const time = one ? `${code(one.started_at)} to ${code(one.finished_at)}` : 'not proved'
    return [
      String(i + 1),
      code(url),
      `${status}${body_complete ? '' : ', body not awaited'}`,
      one ? code(one.address) : 'not proved',
      tls,
      time,
    ]
  })
  return [
    list([
      ['Requested URL', code(manifest.requested_url)],
      ['URL of the page', code(manifest.final_url)],
      ['Time of the capture, by the clock of the service', code(manifest.checked_at)],
      ['Bytes of the body as sent, and decoded', `${manifest.wire_bytes} and ${manifest.decoded_bytes}`],
    ]),
    table(['hop', 'URL', 'status', 'address', 'TLS', 'connection'], rows),
  ].join('\n\n')
}

function softwarePart({ manifest, result }: Facts, { name, runtime, at }: Software): string {
  return list([
    ['Captured and assessed by', result ? `the service, method ${code(result.methodology_version)}` : UNPROVED],
    ['Way from bytes to text', manifest ? code(manifest.extraction) : UNPROVED],
    ['Replayed by', `${code(name)}, ${runtime}`],
    ['Replayed at, by the clock of that machine', code(at.toISOString())],
  ])
}

function digestPart({ packageSha256, packageBytes, files, manifest, result }: Facts): string {
  const row = (what: string, over: string, digest: string | undefined) => [
    what,
    over,
    digest ? `\`${digest}\`` : 'not proved',
  ]
  const ofFile = (name: string) =>
    row(`file ${code(name)}`, 'the file in the package', files?.get(name) && sha256Hex(files.get(name)!))
  const hops = (manifest?.hops ?? []).flatMap((hop, i) => [
    row(`request of hop ${i + 1}`, 'all bytes of the request', hop.request_sha256),
    row(`response head of hop ${i + 1}`, 'from the first byte to the blank line', hop.response_head_sha256),
    row(`response body of hop ${i + 1}`, 'all bytes after the blank line, framing included', hop.response_body_sha256),
    ...(manifest?.certificates_sha256[i] ?? []).map((digest, n) =>
      row(`certificate ${n + 1} of hop ${i + 1}`, 'its DER encoding', digest),
    ),
  ])
  return [
    'Each digest is SHA-256 (FIPS 180-4), in hexadecimal, over exactly the bytes that the row names. RFC 8785 is the canonical form of JSON.',
    table(
      ['what', 'over', 'SHA-256'],
      [
        row('package', `the whole file, ${packageBytes} bytes`, packageSha256),
        ...[MANIFEST, CONNECTIONS, ARCHIVE].map(ofFile),
        ...hops,
        row('page', 'the body without framing and content coding', manifest?.content_sha256),
        row('text', 'the text in UTF-8', manifest?.text_sha256),
        row('result', 'the result without its receipt, in RFC 8785', result?.receipt.envelope.result_sha256),
      ],
    ),
  ].join('\n\n')
}

function receiptPart({ receipts }: Facts): string {
  const rows = (['capture', 'result'] as const).map((kind) => {
    const one = receipts?.[kind]?.attestation
    return one
      ? [kind, String(one.serial), code(one.ts_utc), `\`${one.receipt_hash}\``, `${one.key_id}: \`${one.pubkey_hex}\``]
      : [kind, 'not proved', '', '', '']
  })
  const checkpoints = new Set([receipts?.capture, receipts?.result].flatMap((one) => (one ? [checkpointOf(one)] : [])))
  return [
    'Each receipt is an Ed25519 signature (RFC 8032) over a digest, and a leaf of a Merkle tree (RFC 6962). The receipt of the capture is over the manifest, which holds the digests above; that of the result over its envelope.',
    table(['receipt of', 'serial', 'time of the service', 'receipt_hash', 'key'], rows),
    ...[...checkpoints].map((checkpoint) => `Head of the log that the proofs lead to:\n\n${checkpoint}`),
  ].join('\n\n')
}

/** Indented by four, so that no line of it is read as Markdown. */
function checkpointOf({ checkpoint }: ProvedReceipt): string {
  return checkpoint
    .trimEnd()
    .split('\n')
    .map((line) => `    ${visible(line)}`)
    .join('\n')
}

function timePart({ steps }: Replay): string {
  const stamped = steps.find(({ name }) => name === 'timestamps')
  if (stamped?.state === 'holds')
    return `A time-stamp authority signed that the head of the log above existed: ${cell(stamped.detail ?? '')}. All other times are those of the clock of the service.`
  return 'All times are those of the clock of the service, which the receipts repeat. No time stamp of another authority was proved.'
}

function stepPart({ steps }: Replay): string {
  const rows = steps.map(({ name, proves, state, detail }) => {
    const more = detail === undefined ? '' : `: ${cell(detail)}`
    const outcome = { holds: 'holds', differs: '**does not hold**', not_checked: 'not checked' }[state]
    return [name, proves, `${outcome}${more}`]
  })
  return table(['step', 'what it proves', 'outcome'], rows)
}

const LIMITS = list([
  [
    'The sender',
    'TLS proves to the service, and not to a third party, that the bytes came from the holder of the certificate. The service could have made them up; its signature makes it answerable for them.',
  ],
  [
    'The time',
    'without a time stamp of another authority the time is that of the clock of the service. The log proves an order, not a time.',
  ],
  ['The author', 'nothing shows who wrote the page, or that the holder of the domain approved it.'],
  ['Others', 'nothing shows that anyone else was sent the same page.'],
  ['The screen', 'the text is made from the first response alone, without scripts, images or what they load.'],
  ['Revocation', 'a stapled OCSP response is kept as it came; whether a certificate was revoked was not checked.'],
  ['The truth', 'neither the page nor the claim is shown to be true. A verdict says what a program found in the text.'],
])

const BLANKS = `To be completed by a person who is qualified to certify the system (FRE 902(11), 902(13), 902(14)) and knows it from own work or
from an examination of it. What does not apply is struck out.

- Name: ______________________________________________
- Position and employer: ______________________________________________
- Qualification, and how the system is known: ______________________________________________
- Why the system produces an accurate result (902(13)): ______________________________________________
- How the copy was compared with the original by its digests (902(14)): ______________________________________________
- Corrections to sections 1 to 7: ______________________________________________

Declaration in the form that the law of the place requires (in the United States: 28 U.S.C. § 1746): ______________________

Place and date: ______________________  Signature: ______________________`

function list(items: readonly (readonly [string, string])[]): string {
  return items.map(([name, value]) => `- ${name}: ${value}`).join('\n')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** Text of a package, which must neither end a cell nor be read as Markdown. */
function code(text: string): string {
  return `\`${visible(text).replaceAll('`', '\\u{60}').replaceAll('|', '\\u{7c}')}\``
}

function cell(text: string): string {
  return visible(text).replace(/[|`*_<>[\]]/g, (char) => `\\${char}`)
}
