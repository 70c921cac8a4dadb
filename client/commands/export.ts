// `countersign export`: the whole chain into a file.
import { open } from 'node:fs/promises'
import { progressBar, readPoint, readUrl } from '../arguments.ts'
import { Countersign } from '../client.ts'
import { download } from '../download.ts'
import { command } from './command.ts'
import { readable } from './files.ts'
import { json, note, print } from './output.ts'

export const exportChain = command({
  summary: 'the whole chain into a file; run again to continue',
  operands: ['BASE_URL', 'FILE'],
  about: 'Pins the head at the beginning, and continues an interrupted file. Prints the SERIAL:HASH to keep.',
  examples: [
    'countersign export https://service.example chain.jsonl && countersign verify chain.jsonl --keys keys.json',
  ],
  options: {
    head: { type: 'string', value: 'SERIAL:HASH', help: 'end at this receipt instead of the current head' },
  },
  async run([baseUrl = '', file = ''], options) {
    const service = new Countersign({ baseUrl: readUrl(baseUrl) })
    const head = options.head === undefined ? undefined : readPoint('--head', options.head)
    await using handle = await readable(file, () => open(file, 'a+'))
    const target = {
      read: () => handle.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>,
      truncate: (bytes: number) => handle.truncate(bytes),
      append: (text: string) => handle.appendFile(text),
    }
    const bar = (serial: number, all: number) => note(`\r${progressBar(serial, all)}`)
    const onProgress = process.stderr.isTTY ? bar : undefined
    const { serial, receipt_hash } = await readable(file, () => download(service, target, { head, onProgress }))
    if (onProgress) note('\n')
    // A finished export ends where it was pinned. That the chain has grown since is not seen in the file.
    const behind = head ? 0 : (await service.chainHead()).serial - serial
    if (behind > 0)
      note(`The chain has ${behind} more by now. This file stays as it is: name a new one for the whole chain.\n`)
    return print(options.json ? json({ serial, receipt_hash, behind }) : `${serial}:${receipt_hash}\n`)
  },
})
