// `countersign watch`: keeps the head of a log pinned, and reports a fork or a rollback.
import { setTimeout as pause } from 'node:timers/promises'
import { checkVerifierKey, readSeconds, readUrl, visible } from '../arguments.ts'
import { ALARMS, checkAndKeep, type PinStore } from '../chain/watch.ts'
import { type Countersign, CountersignError } from '../client.ts'
import { command, type ExitStatus } from './command.ts'
import { checkReplaceable, readable, replaceFile, writeNew } from './files.ts'
import { readIfThere } from './input-file.ts'
import { explain, isHeard, jsonLine, note, print } from './output.ts'
import { openClient } from './patience.ts'
import { signatureCheck } from './signature-check.ts'

export const watch = command({
  summary: 'keep the head pinned; report a fork or a rollback',
  operands: ['BASE_URL', 'STATE_FILE'],
  about: 'Runs until it is stopped, or until an alarm. The state file holds the pinned head.',
  examples: [
    'countersign watch https://service.example pinned.json --vkey VKEY',
    'countersign watch https://service.example pinned.json --once',
  ],
  exitStatus: '0 good, 1 an alarm, 2 wrong usage, 3 the service could not be asked.',
  options: {
    vkey: {
      type: 'string',
      value: 'VKEY',
      help:
        'the verifier key, from a source you trust, at the first run or in place of the one that is kept;\n' +
        "without it the first run takes the service's word",
    },
    once: { type: 'boolean', help: 'check once and exit' },
    interval: { type: 'string', value: 'SECONDS', default: '60', help: 'between two looks; 60' },
  },
  async run([baseUrl = '', file = ''], options) {
    const service = openClient({ baseUrl: readUrl(baseUrl) })
    const seconds = readSeconds('--interval', options.interval)
    checkVerifierKey(options.vkey)
    await checkReplaceable(file)
    const store = {
      load: () => readIfThere(file),
      save: (text: string) => replaceFile(file, text, 0o644),
      async keepEvidence(text: string) {
        const path = `${file}.evidence-${Date.now()}.json`
        await writeNew(path, text)
        note(`What was pinned and what was seen are kept in ${path}.\n`)
      },
    }
    for (;;) {
      const status = await readable(file, () => checkOnce(service, store, options))
      if (options.once || status === 1 || !isHeard()) return status
      await pause(seconds * 1000)
    }
  },
})

interface WatchOptions {
  vkey?: string
  json?: boolean
}

async function checkOnce(
  service: Countersign,
  store: PinStore,
  { vkey, json: asJson = false }: WatchOptions,
): Promise<ExitStatus> {
  try {
    const { verdict, detail, seen } = await checkAndKeep(service, store, { vkey, signatureCheck })
    const at = new Date().toISOString()
    print(asJson ? jsonLine({ at, verdict, detail, seen }) : `${at} ${verdict}: ${visible(detail)}\n`)
    return ALARMS.has(verdict) ? 1 : 0
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error
    explain(error, asJson)
    return 3
  }
}
