// `countersign verify`: what a file says, in words, and whether that is proved.
import { checkKeys, checkVerifierKey, readPin, readPoint, readTree, visible } from '../arguments.ts'
import { verifyDocument } from '../document.ts'
import { describeDocument, KeptText } from '../document-words.ts'
import { trustIntroduced } from '../verification.ts'
import { bytesOf, readKeys } from './files.ts'
import type { Options } from './options.ts'
import { json, paint, print } from './output.ts'
import { signatureCheck } from './signature-check.ts'

export async function verify(file: string, options: Options): Promise<number> {
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
}

function printChecks(ok: boolean, checks: { name: string; ok: boolean; detail?: string }[]): void {
  for (const { name, ok, detail } of checks)
    print(`${ok ? paint('green', 'ok  ') : paint('red', 'FAIL')} ${name}${detail ? `: ${visible(detail)}` : ''}\n`)
  print(ok ? `${paint('green', 'good')}\n` : `${paint('red', 'BAD')}\n`)
}
