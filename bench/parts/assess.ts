// The local verifier: verdicts for each second of a core, through WebAssembly as in the product, beside the native runtime with the
// same weights, and beside BM25 alone, which chooses the windows and judges nothing. Then purchases of the whole service under `local`.
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import * as native from 'onnxruntime-node'
import { readConfig } from '../../server/config.ts'
import { openCore } from '../../server/context.ts'
import { transact } from '../../server/db/pool.ts'
import { openLog } from '../../server/telemetry.ts'
import { openThreads } from '../../server/threads/pool.ts'
import { admitBatch } from '../../server/verification/admission/admission.ts'
import { verifyRequest } from '../../server/verification/stages/stages.ts'
import { assessLocally } from '../../workers/assessment/local/assessment.ts'
import { loadVerifier, type Verifier, type VerifierFiles } from '../../workers/assessment/local/verifier.ts'
import { readVerifierFiles } from '../../workers/assessment/local/weights.ts'
import { chooseWindows, sentencesOf } from '../../workers/assessment/local/windows.ts'
import { openWork } from '../../workers/context.ts'
import { readLabels } from '../eval/labels.ts'
import type { Lab } from '../lab.ts'
import { buildAdmission } from '../orders.ts'
import { figure, printHeading, printNote, printRows } from '../table.ts'
import { openSource } from '../worker-harness.ts'

/** Words of the page, as of an article. */
const WORDS = 1000
/** Words of the page on which the share of everything but the model is measured. */
const LONG_WORDS = 2000
const CLAIMS = 20
const LABELS = join(import.meta.dirname, '../eval/countersign.jsonl')

type Run = (claims: readonly string[]) => Promise<string[]>

export async function benchAssess(lab: Lab): Promise<void> {
  const { text, claims } = await makePage(WORDS, lab.quick ? CLAIMS / 5 : CLAIMS)
  const files = readVerifierFiles()
  await using wasm = await loadVerifier(files)
  await using beside = await loadNative(files)
  const verdicts = (verifier: Verifier) => async (asked: readonly string[]) => {
    const given: string[] = []
    for (const claim of asked) given.push((await assessLocally(verifier, text, claim)).claim_support)
    return given
  }
  const ranked = async (asked: readonly string[]) =>
    asked.map((claim) => `${chooseWindows(sentencesOf(text), claim, files.settings.windows).length} windows`)
  const ways: [string, Run][] = [
    ['local verifier, WebAssembly', verdicts(wasm)],
    ['native onnxruntime, the same weights', verdicts(beside)],
    ['BM25 alone: windows, no verdict', ranked],
  ]
  printHeading('assess', `${claims.length} claims on a page of ${WORDS} words, one thread`)
  const measured: string[][] = []
  const rows: [string, ...string[]][] = []
  for (const [what, run] of ways) {
    const { given, seconds } = await cpuOf(run, claims)
    measured.push(given)
    rows.push([what, figure(claims.length / seconds), figure((1000 * seconds) / claims.length)])
  }
  printRows([['', 'for a core second', 'ms of CPU each'], ...rows])
  const [ours = [], theirs = []] = measured
  const same = ours.filter((verdict, i) => verdict === theirs[i]).length
  printNote(
    `the native runtime gives the same verdict on ${same} of ${ours.length} claims; it decides nothing in the product`,
  )
  await benchShare(wasm, files, claims)
  await benchPurchases(lab)
}

/** The share of a verdict's CPU that sentences, windows, tokens and the places of quotes take: a second run knows the model's answers. */
async function benchShare(verifier: Verifier, files: VerifierFiles, claims: readonly string[]): Promise<void> {
  const { text } = await makePage(LONG_WORDS, claims.length)
  const answers = new Map<string, number[]>()
  const keyOf = (claim: string, passage: string) => JSON.stringify([claim, passage])
  const asked: Verifier = {
    ...verifier,
    async logits(claim, passage) {
      const answer = await verifier.logits(claim, passage)
      answers.set(keyOf(claim, passage), answer)
      return answer
    },
  }
  const words = new Tokenizer(files.tokenizer, {})
  const known: Verifier = {
    ...verifier,
    logits(claim, passage) {
      for (const part of [claim, passage]) words.encode(part, { add_special_tokens: false })
      return Promise.resolve(answers.get(keyOf(claim, passage)) ?? [])
    },
  }
  const assess = (by: Verifier) => async (of: readonly string[]) => {
    const given: string[] = []
    for (const claim of of) given.push((await assessLocally(by, text, claim)).claim_support)
    return given
  }
  const whole = await cpuOf(assess(asked), claims)
  const rest = await cpuOf(assess(known), claims)
  if (rest.given.join() !== whole.given.join()) throw new Error('the second run gave other verdicts')
  printNote(
    `on a page of ${LONG_WORDS} words everything but the model takes ${((1000 * rest.seconds) / claims.length).toFixed(1)} ms of ${((1000 * whole.seconds) / claims.length).toFixed(0)}: ${(rest.seconds / whole.seconds).toFixed(4)}, aim 0.05`,
  )
}

/** A worker's own code with one thread of the verifier: retrieval, verdict, settlement and receipt, two requests at a time. */
async function benchPurchases(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const source = opened.use(await openSource(lab))
  const config = readConfig({ ...lab.env, ASSESSMENT: 'local', VERIFIER_THREADS: '1', ...source.env })
  const core = opened.use(await openCore(config, url, { log: openLog('warn') }))
  const work = opened.use(await openWork(core, { slowMs: 60_000 }))
  await work.assessor.ready
  const signal = new AbortController().signal
  let bought = 0
  async function buy() {
    // Each claim is another one, because a verdict on the same text and claim is kept.
    const claim = `The harbour was opened in ${1600 + bought++} by the county engineer.`
    const admission = buildAdmission(core.secrets.payload, { source_url: source.nextUrl('/long/'), claim })
    await transact(core.db, (tx) => admitBatch(tx, [admission], config.maxInFlightPerPayer))
    await verifyRequest({ request_id: admission.id }, work, { signal, attemptsLeft: 4 })
  }
  await buy()
  const count = lab.quick ? CLAIMS / 5 : CLAIMS
  const [cpu, began] = [process.cpuUsage(), performance.now()]
  const buyer = async () => {
    while (bought <= count) await buy()
  }
  await Promise.all([buyer(), buyer()])
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const each = (total: number) => figure((bought - 1) / total)
  printRows([
    ['', 'purchases a second', 'for a core second'],
    ['the whole service, one thread', each(seconds), each((user + system) / 1e6)],
  ])
  printNote(`${bought - 1} purchases under local, of a page of ${(source.bytes.long / 1000).toFixed(1)} kB`)
}

/** CPU of this process, so that other work on the machine does not count. */
async function cpuOf(run: Run, claims: readonly string[]) {
  // Compiles what the first call compiles.
  await run(claims.slice(0, 1))
  const before = process.cpuUsage()
  const given = await run(claims)
  const { user, system } = process.cpuUsage(before)
  return { given, seconds: (user + system) / 1e6 }
}

/** The first pages of the own set as one text, and claims about them. */
async function makePage(length: number, count: number) {
  await using threads = openThreads({ maxThreads: 1 })
  const items = (await readLabels([LABELS], threads)).filter(({ kind }) => !/injection|language/.test(kind))
  const texts = [...new Set(items.map(({ observation }) => observation.source.normalized_text))]
  const lines = texts.join('\n').split('\n')
  const kept: string[] = []
  let words = 0
  while (words < length && lines.length > 0) {
    const line = lines.shift() ?? ''
    words += line.split(/\s+/).filter(Boolean).length
    kept.push(line)
  }
  return { text: kept.join('\n'), claims: items.slice(0, count).map(({ claim }) => claim) }
}

/** The same model and pairs on the native runtime. */
async function loadNative({ model, tokenizer, settings }: VerifierFiles): Promise<Verifier> {
  const session = await native.InferenceSession.create(model, { intraOpNumThreads: 1, interOpNumThreads: 1 })
  const words = new Tokenizer(tokenizer, {})
  const tokensOf = (text: string): number[] => words.encode(text, { add_special_tokens: false }).ids
  const { first, between, last, tokens } = settings
  return {
    settings,
    async logits(claim, passage) {
      const asked = [...first, ...tokensOf(claim), ...between]
      const ids = [...asked, ...tokensOf(passage).slice(0, tokens - asked.length - last.length), ...last]
      const input = new native.Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length])
      const { logits } = await session.run({ input_ids: input })
      return Array.from(logits?.data as Float32Array)
    },
    [Symbol.asyncDispose]: () => session.release(),
  }
}
