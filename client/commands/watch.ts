// `countersign watch`: keeps the head of a log pinned, and reports a fork or a rollback.
import { readFile, rename, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { checkVerifierKey, readSeconds, readUrl, visible } from '../arguments.ts'
import { Countersign, CountersignError } from '../client.ts'
import { ALARMS, lookAndKeep, type PinStore } from '../watch.ts'
import { readable } from './files.ts'
import type { Options } from './options.ts'
import { explain, isHeard, note, print } from './output.ts'
import { signatureCheck } from './signature-check.ts'

export async function watch(baseUrl: string, file: string, options: Options): Promise<number> {
  const service = new Countersign({ baseUrl: readUrl(baseUrl) })
  const seconds = readSeconds('--interval', options.interval)
  checkVerifierKey(options.vkey)
  const store = {
    load: () => readFile(file, 'utf8').catch((error) => (error.code === 'ENOENT' ? null : Promise.reject(error))),
    async save(text: string) {
      await writeFile(`${file}.new`, text)
      await rename(`${file}.new`, file)
    },
    async keepEvidence(text: string) {
      const path = `${file}.evidence-${Date.now()}.json`
      await writeFile(path, text)
      note(`What was pinned and what was seen are kept in ${path}.\n`)
    },
  }
  for (;;) {
    const status = await readable(file, () => lookOnce(service, store, options))
    if (options.once || status === 1 || !isHeard()) return status
    await pause(seconds * 1000)
  }
}

async function lookOnce(service: Countersign, store: PinStore, { vkey, json: asJson }: Options): Promise<number> {
  try {
    const { verdict, detail, seen } = await lookAndKeep(service, store, { vkey, signatureCheck })
    const at = new Date().toISOString()
    print(asJson ? `${JSON.stringify({ at, verdict, detail, seen })}\n` : `${at} ${verdict}: ${visible(detail)}\n`)
    return ALARMS.has(verdict) ? 1 : 0
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error
    explain(error, asJson)
    return 3
  }
}
