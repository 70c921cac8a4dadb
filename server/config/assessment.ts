// The variables ASSESSMENT* and ANTHROPIC_*, and what they mean: which assessment is used, and which model.
import { z } from 'zod'
import type { AssessmentKind } from '../interface/assessment.ts'
import { url } from './addresses.ts'
import { decimal, whole } from './numbers.ts'

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

export const assessmentVariables = {
  ASSESSMENT: {
    schema: z.enum(['auto', 'literal', 'semantic']),
    default: 'auto',
    about:
      'semantic: a model gives a verdict. literal: no model is asked, and no verdict is given. auto: semantic with ANTHROPIC_API_KEY, else literal; mainnet without a key requires literal',
  },
  ANTHROPIC_API_KEY: { schema: z.string().min(1), about: 'Key of the model that assesses', secret: true },
  ANTHROPIC_BASE_URL: { schema: url, about: 'Any server that speaks the Messages API' },
  ANTHROPIC_MODEL: {
    schema: z.string().min(1),
    default: DEFAULT_MODEL,
    about: 'Model id of the semantic assessment',
  },
  ANTHROPIC_MAX_TOKENS: {
    schema: whole(256, 64_000),
    default: '8192',
    about: 'Longest answer of the model in tokens, thinking included',
  },
  ANTHROPIC_PRICES: {
    schema: z.string().regex(/^\d+(\.\d+)?\/\d+(\.\d+)?$/, 'must be input/output'),
    about: `USD for a million tokens, input/output, for the cost metrics. Unset: ${DEFAULT_PRICES} for the default model at Anthropic, else cost is not counted`,
  },
  ASSESSMENT_FALLBACK: {
    schema: z.enum(['none', 'literal']),
    default: 'none',
    about:
      'While the model does not answer. none: new verifications answer 503 and paid ones wait. literal: claims are assessed without a model',
  },
  ASSESSMENT_CONCURRENCY: {
    schema: whole(1, 256),
    default: '8',
    about: 'Calls to the model that one worker process makes in parallel',
  },
  ASSESSMENT_TIMEOUT_SECONDS: {
    schema: decimal(0.05, 110),
    default: '45',
    about: 'Longest wait for one answer of the model',
  },
  ASSESSMENT_WINDOW_TOKENS: {
    schema: whole(500, 200_000),
    default: '24000',
    about: 'Tokens of page text in one call to the model; longer texts are split. Must fit the context of the model',
  },
} as const

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
