// A semantic assessor with real threads and a real HTTP client, which calls a scripted server.
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { type Assessment, assessment as assessmentShape } from '../../../server/interface/assessment.ts'
import type { Observation } from '../../../server/interface/observation.ts'
import { inconsistency } from '../../../server/interface/result.ts'
import { openLog, openMetrics } from '../../../server/telemetry.ts'
import type { Lane, Threads } from '../../../server/threads/pool.ts'
import type { Assessor } from '../../../workers/assessment/assessor.ts'
import { anthropicModel } from '../../../workers/assessment/semantic/anthropic.ts'
import { type SemanticTools, semanticAssessor } from '../../../workers/assessment/semantic/assessor.ts'
import type { Circuit } from '../../../workers/assessment/semantic/circuit.ts'
import type { Model, ModelOptions } from '../../../workers/assessment/semantic/model.ts'
import { type MessagesServer, openMessagesServer, type Reply, type Script } from './messages-server.ts'

export interface Lab extends AsyncDisposable {
  server: MessagesServer
  circuit: Circuit
  assessor: Assessor
  /** Milliseconds the client waited between attempts, without having waited. */
  pauses: number[]
  logged: Record<string, unknown>[]
  metric(name: string): Promise<number>
  /** Assesses, and checks the result against the interface and the text with code of its own. */
  assess(claim: string, text: string, more?: Partial<Observation>, lane?: Lane): Promise<Assessment>
}

export interface LabOptions extends Partial<Pick<ModelOptions, 'timeoutMs' | 'concurrency' | 'prices'>> {
  windowTokens?: number
  fallback?: Assessor
  second?: SemanticTools['second']
  now?: () => number
  schedule?: (work: () => void, ms: number) => void
  /** Another protocol. */
  open?: (options: ModelOptions) => Model
  /** The reply to our own question; null: a right answer. */
  trial?: Reply | null
}

export async function openLab(threads: Threads, script: Script, options: LabOptions = {}): Promise<Lab> {
  await using opened = new AsyncDisposableStack()
  const server = opened.use(await openMessagesServer(script))
  const logged: Record<string, unknown>[] = []
  const log = openLog('trace', { write: (line) => logged.push(JSON.parse(line)) })
  const metrics = openMetrics()
  server.trial = options.trial ?? null
  const pauses: number[] = []
  const model = (options.open ?? anthropicModel)({
    apiKey: 'test-key',
    baseUrl: server.url,
    model: 'scripted-1',
    maxTokens: 1000,
    timeoutMs: options.timeoutMs ?? 20_000,
    concurrency: options.concurrency ?? 4,
    prices: options.prices === undefined ? { input: 1, output: 5 } : options.prices,
    circuit: { now: options.now, schedule: options.schedule },
    metrics,
    log,
    pause: async (ms) => void pauses.push(ms),
  })
  const assessor = semanticAssessor({
    model,
    threads,
    secret: Buffer.alloc(32, 7),
    windowTokens: options.windowTokens ?? 24_000,
    second: options.second ?? null,
    fallback: options.fallback ?? null,
    metrics,
    log,
  })
  const closing = opened.move()
  return {
    server,
    circuit: model.circuit,
    assessor,
    pauses,
    logged,
    async metric(name) {
      const found = await metrics.registry.getSingleMetric(name)?.get()
      return found?.values.reduce((sum, { value }) => sum + value, 0) ?? 0
    },
    async assess(claim, text, more, lane) {
      const seen = observationOf(text, more)
      const found = await assessor.assess({ claim, observation: seen, ...(lane && { lane }) })
      const problem = flawOf(found, text, seen)
      if (problem) throw new Error(problem)
      return found
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

export const digestOf = (text: string) => bytesToHex(sha256(utf8ToBytes(text)))

export function observationOf(text: string, more: Partial<Observation> = {}): Observation {
  return {
    source: {
      final_url: 'https://site.test/page',
      http_status: 200,
      content_type: 'text/plain; charset=utf-8',
      content_sha256: 'c'.repeat(64),
      text_sha256: digestOf(text),
      normalized_text: text,
      offset_unit: 'unicode_codepoint',
      redirects: [],
      wire_bytes: 1000,
      decoded_bytes: 1000,
    },
    source_identity: { hostname: 'site.test', tls_verified: true, publisher_identity: 'unknown' },
    limits: { max_text_chars: 100_000 },
    risk_flags: [],
    checked_at: '2026-01-01T00:00:00Z',
    procedure: 'test',
    ...more,
  }
}

/** What is wrong with an assessment of this text, checked with other code than made it; null if nothing is. */
export function flawOf(found: Assessment, text: string, { source }: Observation): string | null {
  const parsed = assessmentShape.safeParse(found)
  if (!parsed.success) return parsed.error.message
  const broken = inconsistency(found)
  if (broken) return broken
  if (Array.from(found.explanation).length > 800 || !found.explanation.isWellFormed())
    return 'the explanation is too long'
  if (new Set(found.risk_flags).size !== found.risk_flags.length) return 'a flag is there twice'
  if (found.procedure.length > 100) return 'the procedure is too long'
  const points = Array.from(text)
  for (const [i, item] of found.evidence.entries()) {
    if (item.evidence_id !== `e${i + 1}`) return 'the evidence is misnumbered'
    if (points.slice(item.start, item.end).join('') !== item.quote) return `not in the text: ${item.quote}`
    if (item.source_sha256 !== source.content_sha256) return 'another source'
    if (item.text_sha256 !== digestOf(text)) return 'another text'
  }
  return null
}
