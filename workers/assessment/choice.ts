// Chooses the assessor of a worker from its configuration.
import { createHmac } from 'node:crypto'
import type { Config } from '../../server/config.ts'
import type { Core } from '../../server/context.ts'
import type { Threads } from '../../server/threads/pool.ts'
import type { Assessor } from './assessor.ts'
import { literalAssessor } from './literal/assessor.ts'
import { type LocalAssessor, openLocalAssessor } from './local.ts'
import { semanticAssessor } from './semantic/assessor.ts'
import type { Model } from './semantic/model.ts'

/**
 * Begins to load the verifier where the configuration uses it: as the assessor, as the second reader of a model, or in place of a
 * model that is away. Undefined elsewhere.
 */
export function openConfiguredVerifier({
  config: { model, assessment },
  metrics,
  log,
}: Pick<Core, 'config' | 'metrics' | 'log'>): LocalAssessor | undefined {
  const { kind, fallback, hasSecondReader, verifierThreads } = assessment
  const isUsed = model ? hasSecondReader || fallback === 'local' : kind === 'local'
  return isUsed ? openLocalAssessor({ threads: verifierThreads, metrics, log }) : undefined
}

/**
 * The assessor that the configuration names: `config.model` is set exactly where the assessment is semantic. The model's SDK
 * is loaded with a model only: it is large.
 * @param verifier that of `openConfiguredVerifier`
 */
export async function chooseAssessor(
  { config, metrics, log, secrets }: Core,
  threads: Threads,
  verifier: LocalAssessor | undefined,
): Promise<Assessor> {
  const literal = literalAssessor(threads)
  const { model: settings, assessment } = config
  if (!settings) return verifier ?? literal
  const { windowTokens, fallback, hasSecondReader } = assessment
  return semanticAssessor({
    model: await openConfiguredModel(settings, { config, metrics, log }),
    threads,
    secret: createHmac('sha256', secrets.observation).update('marks in prompts').digest(),
    windowTokens,
    second: (hasSecondReader && verifier) || null,
    fallback: fallback === 'none' ? null : (fallback === 'local' && verifier) || literal,
    metrics,
    log,
  })
}

/** The model that the configuration names, by the protocol of its server. It tries a question of ours at once. */
export async function openConfiguredModel(
  { protocol, ...settings }: NonNullable<Config['model']>,
  { config, metrics, log }: Pick<Core, 'config' | 'metrics' | 'log'>,
): Promise<Model> {
  const { concurrency, timeoutMs } = config.assessment
  const options = { ...settings, concurrency, timeoutMs, metrics, log }
  if (protocol === 'openai') return (await import('./semantic/openai.ts')).openaiModel(options)
  return (await import('./semantic/anthropic.ts')).anthropicModel(options)
}
