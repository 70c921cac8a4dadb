// `countersign verify`: prints what a file says, in words, and whether that is proved.
import { checkKeys, checkVerifierKey, readPin, readPoint, readTree, visible } from '../arguments.ts'
import { verifyDocument } from '../document.ts'
import { describeDocument, KeptText } from '../document-words.ts'
import { trustIntroduced } from '../verification.ts'
import { command } from './command.ts'
import { bytesOf, readKeys } from './files.ts'
import { json, paint, print } from './output.ts'
import { signatureCheck } from './signature-check.ts'

export const verify = command({
  summary: 'check a file offline; - reads standard input',
  operands: ['FILE'],
  usage: '(--keys FILE | --pin KEYID:HEX)...',
  about: `Takes a completed result, a receipt, one attestation, an export, or consecutive attestations (an array, or a page of
/v1/chain), prints what a result says and one line per check, and needs the signing key from a source you trust
independently. The last line is good or BAD.`,
  examples: [
    'countersign verify result.json --pin 1:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    'countersign verify - --keys keys.json --json < result.json | jq .ok',
    'countersign verify chain.jsonl --keys keys.json --through SERIAL:HASH',
  ],
  options: {
    keys: { type: 'string', multiple: true, value: 'FILE', help: 'trusted keys as /v1/keys lists them' },
    pin: { type: 'string', multiple: true, value: 'KEYID:HEX', help: 'one trusted key; may be repeated' },
    introduced: {
      type: 'string',
      multiple: true,
      value: 'FILE',
      help: 'keys as /v1/keys lists them, trusted only where a trusted key introduces them',
    },
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
  },
  async run([file = ''], options) {
    const pinned = [
      ...(await Promise.all((options.keys ?? []).map(readKeys))).flat(),
      ...(options.pin ?? []).map(readPin),
    ]
    checkKeys(pinned)
    checkVerifierKey(options.vkey)
    const introduced = (await Promise.all((options.introduced ?? []).map(readKeys))).flat()
    const kept = new KeptText()
    const { ok, checks } = await verifyDocument(kept.through(bytesOf(file)), {
      keys: trustIntroduced(introduced, pinned, { signatureCheck }),
      vkey: options.vkey,
      from: options.from === undefined ? undefined : readPoint('--from', options.from, 0),
      through: options.through?.map((point) => readPoint('--through', point)),
      head: options.head === undefined ? undefined : readPoint('--head', options.head),
      tree: options.tree === undefined ? undefined : readTree('--tree', options.tree),
      signatures: options['last-signature'] ? 'last' : 'every',
      signatureCheck,
    })
    const { failure, words } = describeDocument(kept.text())
    if (options.json) print(json({ ok, failure, says: words, checks: failure ? [] : checks }))
    else {
      for (const [name, text] of Object.entries(words)) print(`${`${name}:`.padEnd(9)} ${visible(text)}\n`)
      if (failure) print(`${paint('red', failure)}\n`)
      else printChecks(ok, checks)
    }
    return ok ? 0 : 1
  },
})

function printChecks(ok: boolean, checks: { name: string; ok: boolean; detail?: string }[]): void {
  for (const { name, ok, detail } of checks)
    print(`${ok ? paint('green', 'ok  ') : paint('red', 'FAIL')} ${name}${detail ? `: ${visible(detail)}` : ''}\n`)
  print(ok ? `${paint('green', 'good')}\n` : `${paint('red', 'BAD')}\n`)
}
