// `countersign export`: the whole chain into a file.
import { open } from 'node:fs/promises'
import { progressBar, readPoint, readUrl } from '../arguments.ts'
import { Countersign } from '../client.ts'
import { download } from '../download.ts'
import { readable } from './files.ts'
import type { Options } from './options.ts'
import { json, note, print } from './output.ts'

export async function exportTo(baseUrl: string, file: string, options: Options): Promise<number> {
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
  return print(options.json ? json({ serial, receipt_hash }) : `${serial}:${receipt_hash}\n`)
}
