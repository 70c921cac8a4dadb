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
 * The assessor that the configuration names: `config.model` is set exactly where the assessment is semantic. The model's SDK
 * is loaded with a model only: it is large. What has to be closed is added to `opened`.
 */
export async function chooseAssessor(
  { config, metrics, log, secrets }: Core,
  threads: Threads,
  opened: AsyncDisposableStack,
): Promise<Assessor> {
  const literal = literalAssessor(threads)
  const { model: settings, assessment } = config
  let local: LocalAssessor | undefined
  const openLocal = () => {
    local ??= opened.use(openLocalAssessor({ threads: assessment.verifierThreads, metrics, log }))
    return local
  }
  if (!settings) return assessment.kind === 'local' ? openLocal() : literal
  const { windowTokens, fallback, hasSecondReader } = assessment
  return semanticAssessor({
    model: await openConfiguredModel(settings, { config, metrics, log }),
    threads,
    secret: createHmac('sha256', secrets.observation).update('marks in prompts').digest(),
    windowTokens,
    second: hasSecondReader ? openLocal() : null,
    fallback: fallback === 'none' ? null : fallback === 'local' ? openLocal() : literal,
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
