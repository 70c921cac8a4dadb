// The variables ASSESSMENT*, VERIFIER_THREADS, ANTHROPIC_* and OPENAI_*, and what they mean: which assessment is used, and which model.
import { availableParallelism, totalmem } from 'node:os'
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
  OPENAI_API_KEY?: string | undefined
  OPENAI_BASE_URL?: string | undefined
  OPENAI_MODEL?: string | undefined
}

interface AssessmentValues extends ModelValues {
  ASSESSMENT_FALLBACK: 'none' | 'local' | 'literal'
  ASSESSMENT_SECOND_READER: 'local' | 'none'
  VERIFIER_THREADS?: number | undefined
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
    schema: z.enum(['auto', 'semantic', 'local', 'literal']),
    default: 'auto',
    about:
      'semantic: a language model judges. local: the verifier of the product. literal: quotes without verdict. auto: semantic with ANTHROPIC_API_KEY or OPENAI_MODEL, else local',
  },
  VERIFIER_THREADS: {
    schema: whole(1, 64),
    about: 'Local verifier threads of a worker, 350 MB each. Unset: one a core, as memory allows',
  },
  ANTHROPIC_API_KEY: { schema: z.string().min(1), about: 'Key of the language model', secret: true },
  ANTHROPIC_BASE_URL: { schema: url, about: 'Another server of the Messages API' },
  ANTHROPIC_MODEL: {
    schema: z.string().min(1),
    default: DEFAULT_MODEL,
    about: 'Its model',
  },
  ANTHROPIC_MAX_TOKENS: {
    schema: whole(256, 64_000),
    default: '8192',
    about: 'Longest answer in tokens, thinking included; also of OPENAI_MODEL',
  },
  ANTHROPIC_PRICES: {
    schema: z.string().regex(/^\d+(\.\d+)?\/\d+(\.\d+)?$/, 'must be input/output'),
    about: `USD a million tokens, input/output; also of OPENAI_MODEL. Unset: ${DEFAULT_PRICES} for the default model at Anthropic, else not counted`,
  },
  OPENAI_MODEL: {
    schema: z.string().min(1),
    about: 'Model id of the chat completions API, in place of ANTHROPIC_*',
  },
  OPENAI_BASE_URL: {
    schema: url,
    about: 'Its server: vLLM, llama.cpp, Ollama, a gateway. Unset: OpenAI',
  },
  OPENAI_API_KEY: { schema: z.string().min(1), about: 'Its key, if it needs one', secret: true },
  ASSESSMENT_SECOND_READER: {
    schema: z.enum(['local', 'none']),
    default: 'local',
    about: 'local: the verifier reads each page too; the opposite flags verdict_doubted. none: saves memory and time',
  },
  ASSESSMENT_FALLBACK: {
    schema: z.enum(['none', 'local', 'literal']),
    default: 'none',
    about:
      'While the model is away. none: new verifications get 503, paid ones wait. local: the verifier judges. literal: quotes',
  },
  ASSESSMENT_CONCURRENCY: {
    schema: whole(1, 256),
    default: '8',
    about: 'Parallel model calls of a worker',
  },
  ASSESSMENT_TIMEOUT_SECONDS: {
    schema: decimal(0.05, 110),
    default: '45',
    about: 'Longest wait for its answer',
  },
  ASSESSMENT_WINDOW_TOKENS: {
    schema: whole(500, 200_000),
    default: '90000',
    about: 'Tokens of page text in one call; longer texts are split. Must fit its context',
  },
} as const

export function assessmentProblems(values: ModelValues): string[] {
  const { ASSESSMENT, ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL } = values
  if (ANTHROPIC_API_KEY && OPENAI_MODEL)
    return ['ANTHROPIC_API_KEY and OPENAI_MODEL are both set: one model gives the verdict.']
  if (OPENAI_MODEL && !OPENAI_API_KEY && !OPENAI_BASE_URL)
    return ['OPENAI_MODEL is set, and neither OPENAI_API_KEY nor OPENAI_BASE_URL.']
  if (OPENAI_BASE_URL && !OPENAI_MODEL) return ['OPENAI_BASE_URL is set, and OPENAI_MODEL is not.']
  if (ASSESSMENT !== 'semantic' || ANTHROPIC_API_KEY || OPENAI_MODEL) return []
  return ['ASSESSMENT is semantic, and neither ANTHROPIC_API_KEY nor OPENAI_MODEL is set.']
}

/** Undefined for local and literal assessment, which ask no language model. `prices`: USD per million tokens, null where they are not known. */
export function readModel(values: ModelValues) {
  if (values.ASSESSMENT === 'literal' || values.ASSESSMENT === 'local') return undefined
  const server = readServer(values)
  if (!server) return undefined
  const isDefault = server.protocol === 'anthropic' && server.model === DEFAULT_MODEL && !server.baseUrl
  const [input, output] = (values.ANTHROPIC_PRICES ?? (isDefault ? DEFAULT_PRICES : '')).split('/').map(Number)
  return {
    ...server,
    maxTokens: values.ANTHROPIC_MAX_TOKENS,
    prices: input === undefined || output === undefined ? null : { input, output },
  }
}

function readServer(values: ModelValues) {
  if (values.OPENAI_MODEL)
    return {
      protocol: 'openai' as const,
      apiKey: values.OPENAI_API_KEY ?? NO_KEY,
      baseUrl: values.OPENAI_BASE_URL,
      model: values.OPENAI_MODEL,
    }
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_BASE_URL: baseUrl, ANTHROPIC_MODEL: model } = values
  return apiKey ? { protocol: 'anthropic' as const, apiKey, baseUrl, model } : undefined
}

/** What is sent to a server that needs no key. */
const NO_KEY = 'none'

export function readAssessment(values: AssessmentValues) {
  const kind: AssessmentKind = readModel(values) ? 'semantic' : values.ASSESSMENT === 'literal' ? 'literal' : 'local'
  return {
    kind,
    verifierThreads: values.VERIFIER_THREADS ?? affordableThreads(),
    fallback: values.ASSESSMENT_FALLBACK,
    hasSecondReader: values.ASSESSMENT_SECOND_READER === 'local',
    concurrency: values.ASSESSMENT_CONCURRENCY,
    timeoutMs: values.ASSESSMENT_TIMEOUT_SECONDS * 1000,
    windowTokens: values.ASSESSMENT_WINDOW_TOKENS,
  }
}

/** One thread for each core, as far as memory holds their weights beside the rest of the process; at least one. */
function affordableThreads(): number {
  const bytes = process.constrainedMemory() || totalmem()
  const affordable = Math.floor((Math.min(bytes, totalmem()) - REST_BYTES) / THREAD_BYTES)
  return Math.max(1, Math.min(availableParallelism(), affordable))
}

/** What a thread with the weights takes at most, and what a worker takes without one. */
const THREAD_BYTES = 400 * 1024 * 1024
const REST_BYTES = 200 * 1024 * 1024
