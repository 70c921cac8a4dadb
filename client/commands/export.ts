// `countersign export`: the whole chain into a file.
import { statSync } from 'node:fs'
import { appendFile, truncate, writeFile } from 'node:fs/promises'
import { progressBar, readPoint, readUrl, UsageError, visible } from '../arguments.ts'
import { download } from '../chain/download.ts'
import { CountersignError } from '../client.ts'
import { downloadReplies } from '../outside-time.ts'
import { command } from './command.ts'
import { checkWritable, readable } from './files.ts'
import { bytesOf } from './input-file.ts'
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
    // Opened only to change it, so that a stop before the first answer leaves no file.
    const target = {
      read: () => beginningOf(file),
      truncate: async (bytes: number) => (isFile(file) ? await truncate(file, bytes) : undefined),
      append: (text: string) => appendFile(file, text),
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

async function* beginningOf(file: string): AsyncGenerator<Uint8Array> {
  if (isFile(file)) yield* bytesOf(file)
}

/** A pipe is not: what was written there cannot be read. */
const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

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
