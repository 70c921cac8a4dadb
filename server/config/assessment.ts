// Parser of the variables ASSESSMENT and ANTHROPIC_*: which assessment is used, and which model.
import type { AssessmentKind } from '../interface/assessment.ts'

interface ModelValues {
  ASSESSMENT: 'auto' | AssessmentKind
  ANTHROPIC_API_KEY?: string | undefined
  ANTHROPIC_BASE_URL?: string | undefined
  ANTHROPIC_MODEL: string
  ANTHROPIC_MAX_TOKENS: number
  ANTHROPIC_PRICES?: string | undefined
}

interface AssessmentValues extends ModelValues {
  ASSESSMENT_FALLBACK: 'none' | 'literal'
  ASSESSMENT_CONCURRENCY: number
  ASSESSMENT_TIMEOUT_SECONDS: number
  ASSESSMENT_WINDOW_TOKENS: number
}

/** The other defaults are chosen for this model, which Anthropic offers for large numbers of calls. */
export const DEFAULT_MODEL = 'claude-haiku-5-5'
/** USD per million tokens, input/output, of the default model. */
export const DEFAULT_PRICES = '0.10/0.50'

/** In mainnet mode a forgotten key must not lead to quotes without a verdict, so `literal` has to be set there. */
export function assessmentProblems({
  ASSESSMENT,
  ANTHROPIC_API_KEY,
  PAYMENT_MODE,
}: ModelValues & { PAYMENT_MODE: string }): string[] {
  if (ANTHROPIC_API_KEY || ASSESSMENT === 'literal') return []
  if (ASSESSMENT === 'semantic') return ['ASSESSMENT is semantic, and ANTHROPIC_API_KEY is not set.']
  if (PAYMENT_MODE !== 'mainnet') return []
  return [
    'ASSESSMENT must be literal in mainnet mode without ANTHROPIC_API_KEY: then no model is asked, and no verdict is sold.',
  ]
}

/** Undefined for literal assessment, which asks no model. `prices`: USD per million tokens, null where they are not known. */
export function readModel(values: ModelValues) {
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_BASE_URL: baseUrl } = values
  if (!apiKey || values.ASSESSMENT === 'literal') return undefined
  const isDefault = values.ANTHROPIC_MODEL === DEFAULT_MODEL && !baseUrl
  const [input, output] = (values.ANTHROPIC_PRICES ?? (isDefault ? DEFAULT_PRICES : '')).split('/').map(Number)
  return {
    apiKey,
    baseUrl,
    model: values.ANTHROPIC_MODEL,
    maxTokens: values.ANTHROPIC_MAX_TOKENS,
    prices: input === undefined || output === undefined ? null : { input, output },
  }
}

export function readAssessment(values: AssessmentValues) {
  const kind: AssessmentKind = readModel(values) ? 'semantic' : 'literal'
  return {
    kind,
    fallback: values.ASSESSMENT_FALLBACK,
    concurrency: values.ASSESSMENT_CONCURRENCY,
    timeoutMs: values.ASSESSMENT_TIMEOUT_SECONDS * 1000,
    windowTokens: values.ASSESSMENT_WINDOW_TOKENS,
  }
}
