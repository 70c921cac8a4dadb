// Chooses the assessor of a worker from its configuration.
import { createHmac } from 'node:crypto'
import type { Core } from '../../server/context.ts'
import type { Threads } from '../../server/threads/pool.ts'
import { anthropicModel } from './anthropic.ts'
import type { Assessor } from './assessor.ts'
import { buildCircuit } from './circuit.ts'
import { literalAssessor } from './literal.ts'
import { semanticAssessor } from './semantic.ts'

/** The assessor that the configuration names: `config.model` is set exactly where the assessment is semantic. */
export function chooseAssessor({ config, metrics, log, secrets }: Core, threads: Threads): Assessor {
  const literal = literalAssessor(threads)
  const { model: settings, assessment } = config
  if (!settings) return literal
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
