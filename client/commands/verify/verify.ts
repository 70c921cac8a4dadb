// `countersign verify`: prints what a file says, in words, and whether that is proved.
import { checkVerifierKey, readPoint, readTree, UsageError, visible } from '../../arguments.ts'
import { verifyDocument } from '../../document.ts'
import { describeDocument, KeptText } from '../../document-words.ts'
import { isUnknownKey, type Verification } from '../../verification.ts'
import { command } from '../command.ts'
import { bytesOf } from '../input-file.ts'
import { json, paint, print } from '../output.ts'
import { PINS, readTrusted } from '../pins.ts'
import { signatureCheck } from '../signature-check.ts'
import { recompute } from './recompute.ts'
import { findReplies, judgeReplies } from './timestamps.ts'

export const verify = command({
  summary: 'check a file offline; - reads standard input',
  operands: ['FILE'],
  usage: '(--keys FILE | --pin KEYID:HEX)...',
  about: `Takes a completed result, a receipt, one attestation, an export, or consecutive attestations (an array, or a page of
/v1/chain), prints what a result says and one line per check, and needs the signing key from a source you trust
independently. The last line is good, BAD, or unknown key: unchanged, but signed with a key that is not
among yours, as after a rotation.

Beside an export, FILE.timestamps has replies of time-stamp authorities, as \`export\` stores them. The check
timestamps says which part of the chain existed at which time, by which authority.

With --recompute the verdict of a result is made again from the text in the file, by the verifier that the service used,
and compared. It needs the package countersign-verifier, and nothing leaves this machine.`,
  examples: [
    'countersign verify result.json --pin 1:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    'countersign verify - --keys keys.json --json < result.json | jq .ok',
    'countersign verify result.json --keys keys.json --recompute',
    'countersign verify chain.jsonl --keys keys.json --through SERIAL:HASH',
  ],
  exitStatus: '0 good, 1 bad or refused, 2 wrong usage, or --recompute is not possible.',
  options: {
    ...PINS,
    vkey: {
      type: 'string',
      value: 'VKEY',
      help: "receipt, export: the trusted verifier key of the log's checkpoints",
    },
    tree: {
      type: 'string',
      value: 'SIZE:ROOT',
      help: 'receipt: a tree that was pinned before, as a checkpoint names it; the root in hex',
    },
    from: { type: 'string', value: 'SERIAL:HASH', help: 'attestations: the receipt before the first one' },
    through: {
      type: 'string',
      multiple: true,
      value: 'SERIAL:HASH',
      help: 'export, attestations: a receipt that was pinned before; may be repeated',
    },
    head: { type: 'string', value: 'SERIAL:HASH', help: 'export, attestations: the receipt it must end with' },
    'last-signature': {
      type: 'boolean',
      help: 'export, attestations: check the last signature, which covers the rest through the links',
    },
    timestamps: {
      type: 'string',
      value: 'FILE',
      help: 'export: replies of time-stamp authorities; else those in the file beside it',
    },
    'timestamp-ca': {
      type: 'string',
      value: 'FILE',
      help: 'export: trusted roots of time-stamp authorities (PEM); else those of Node',
    },
    recompute: { type: 'boolean', help: 'result: make the verdict of the local verifier again and compare it' },
    weights: {
      type: 'string',
      value: 'DIR',
      help: '--recompute: a folder with the weights; else those of the package',
    },
  },
  async run([file = ''], options) {
    const keys = await readTrusted(options)
    checkVerifierKey(options.vkey)
    const kept = new KeptText()
    if (options.weights !== undefined && !options.recompute)
      throw new UsageError('--weights says where the weights for --recompute are; add --recompute.')
    const replies = await findReplies(file, options)
    const verified = await verifyDocument(kept.through(bytesOf(file)), {
      keys,
      vkey: options.vkey,
      from: options.from === undefined ? undefined : readPoint('--from', options.from, 0),
      through: options.through?.map((point) => readPoint('--through', point)),
      head: options.head === undefined ? undefined : readPoint('--head', options.head),
      tree: options.tree === undefined ? undefined : readTree('--tree', options.tree),
      signatures: options['last-signature'] ? 'last' : 'every',
      signatureCheck,
      trees: replies?.trees,
    })
    if (options.timestamps !== undefined && verified.checks[0]?.name !== 'format')
      throw new UsageError('--timestamps is about an export, and the file holds something else.')
    const stamped = replies && verified.checks[0]?.name === 'format' ? await judgeReplies(replies, options) : undefined
    const { failure, words } = describeDocument(kept.text())
    const recomputed = options.recompute ? [await recompute(kept.text(), options.weights)] : []
    const checks = [...verified.checks, ...(stamped ? [stamped.check] : []), ...recomputed]
    const verification = { ok: checks.every((check) => check.ok) && verified.ok, checks }
    const { ok } = verification
    if (options.json)
      print(
        json({
          ok,
          unknown_key: isUnknownKey(verification),
          failure,
          says: words,
          checks: failure ? [] : checks,
          ...(stamped && { timestamps: stamped.times }),
        }),
      )
    else {
      for (const [name, text] of Object.entries(words)) print(`${`${name}:`.padEnd(9)} ${visible(text)}\n`)
      if (failure) print(`${paint('red', failure)}\n`)
      else printChecks(verification)
    }
    return ok ? 0 : 1
  },
})

function printChecks(verification: Verification): void {
  const isUnknown = isUnknownKey(verification)
  const mark = isUnknown ? paint('yellow', '?   ') : paint('red', 'FAIL')
  for (const { name, ok, detail } of verification.checks)
    print(`${ok ? paint('green', 'ok  ') : mark} ${name}${detail ? `: ${visible(detail)}` : ''}\n`)
  if (isUnknown) print(`${UNKNOWN}\n`)
  const bad = isUnknown ? paint('yellow', 'unknown key') : paint('red', 'BAD')
  print(`${verification.ok ? paint('green', 'good') : bad}\n`)
}

const UNKNOWN =
  'Nothing was changed since it was signed, but the key is not one of yours, so this proves nothing yet. If the service has ' +
  'changed its key, --introduced FILE follows the change from your key: FILE is the JSON of /v1/keys.'
