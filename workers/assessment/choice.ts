// Chooses the assessor of a worker from its configuration.
import { createHmac } from 'node:crypto'
import type { Core } from '../../server/context.ts'
import type { Threads } from '../../server/threads/pool.ts'
import type { Assessor } from './assessor.ts'
import { buildCircuit } from './circuit.ts'
import { literalAssessor } from './literal.ts'
import { semanticAssessor } from './semantic.ts'

/**
 * The assessor that the configuration names: `config.model` is set exactly where the assessment is semantic. The model's SDK
 * is loaded with a model only: it is large.
 */
export async function chooseAssessor({ config, metrics, log, secrets }: Core, threads: Threads): Promise<Assessor> {
  const literal = literalAssessor(threads)
  const { model: settings, assessment } = config
  if (!settings) return literal
  const { anthropicModel } = await import('./anthropic.ts')
  const circuit = buildCircuit()
  const { concurrency, timeoutMs, windowTokens, fallback } = assessment
  return semanticAssessor({
    model: anthropicModel({ ...settings, concurrency, timeoutMs, circuit, metrics, log }),
    circuit,
    threads,
    secret: createHmac('sha256', secrets.observation).update('marks in prompts').digest(),
    windowTokens,
    fallback: fallback === 'literal' ? literal : null,
    metrics,
    log,
  })
}
