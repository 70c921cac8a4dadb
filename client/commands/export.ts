// `countersign export`: the whole chain into a file.
import { existsSync } from 'node:fs'
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises'
import { progressBar, readPoint, readUrl, UsageError, visible } from '../arguments.ts'
import { download } from '../chain/download.ts'
import { CountersignError } from '../client.ts'
import { downloadReplies } from '../outside-time.ts'
import { command } from './command.ts'
import { checkWritable, readable } from './files.ts'
import { json, note, print } from './output.ts'
import { openClient, patienceWith } from './patience.ts'

export const exportChain = command({
  summary: 'the whole chain into a file; run again to continue',
  operands: ['BASE_URL', 'FILE'],
  about: `Pins the head at the beginning, and continues an interrupted file. Prints the SERIAL:HASH to keep.
If time-stamp authorities have signed checkpoints of the chain, their replies are stored in FILE.timestamps,
where \`countersign verify FILE\` finds them.`,
  examples: [
    'countersign export https://service.example chain.jsonl && countersign verify chain.jsonl --keys keys.json',
  ],
  options: {
    head: { type: 'string', value: 'SERIAL:HASH', help: 'end at this receipt instead of the current head' },
  },
  async run([baseUrl = '', file = ''], options) {
    const service = openClient({ baseUrl: readUrl(baseUrl) })
    const head = options.head === undefined ? undefined : readPoint('--head', options.head)
    await checkWritable(file, `${file}.timestamps`)
    const isNew = !existsSync(file)
    await using handle = await readable(file, () => open(file, 'a+'))
    await using _tidy = { [Symbol.asyncDispose]: () => (isNew ? removeEmpty(handle, file) : Promise.resolve()) }
    const target = {
      read: () => handle.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>,
      truncate: (bytes: number) => handle.truncate(bytes),
      append: (text: string) => handle.appendFile(text),
    }
    const bar = (serial: number, all: number) => note(`\r${progressBar(serial, all)}`)
    const onProgress = process.stderr.isTTY ? bar : undefined
    const { serial, receipt_hash } = await readable(file, () =>
      download(service, target, { head, onProgress }).catch((cause) => {
        if (!(cause instanceof SyntaxError)) throw cause
        throw new UsageError(
          `Cannot use ${file}: it holds something else than the beginning of this export (${cause.message}). It is kept as it is: name another file.`,
          { cause },
        )
      }),
    )
    if (onProgress) note('\n')
    const timestamps = await keepReplies(readUrl(baseUrl), serial, `${file}.timestamps`)
    // A finished export ends where it was pinned. That the chain has grown since is not seen in the file.
    const behind = head ? 0 : (await service.chainHead()).serial - serial
    if (behind > 0)
      note(`The chain has ${behind} more by now. This file stays as it is: name a new one for the whole chain.\n`)
    return print(options.json ? json({ serial, receipt_hash, behind, timestamps }) : `${serial}:${receipt_hash}\n`)
  },
})

/** So that a service that does not answer leaves no file. */
async function removeEmpty(handle: FileHandle, file: string): Promise<void> {
  if ((await handle.stat()).size === 0) await rm(file)
}

/** Answers how many replies the file holds. The export is whole without them. */
async function keepReplies(baseUrl: string, serial: number, file: string): Promise<number> {
  try {
    const lines = await downloadReplies(baseUrl, serial, patienceWith(baseUrl).plainFetch)
    if (lines !== '') await readable(file, () => writeFile(file, lines))
    return lines.split('\n').length - 1
  } catch (error) {
    if (!(error instanceof CountersignError || error instanceof SyntaxError)) throw error
    note(`The timestamps of the chain are missing: ${visible(error.message)}\n`)
    return 0
  }
}
