// An assertion for promptfoo: passes where the page that an output cites supports it. The page is fetched through the service.

import { grade } from './grading.ts'
import type { Question, WrapperOptions } from './purchase.ts'

export type { Question, WrapperOptions } from './purchase.ts'

/** What promptfoo hands to an assertion of type `javascript`; only these members are read. */
export interface AssertionContext {
  vars?: Record<string, unknown>
  config?: Record<string, unknown>
}

/** promptfoo's GradingResult. */
export interface GradingResult {
  pass: boolean
  score: number
  reason: string
  metadata: Record<string, unknown>
}

export interface AssertionOptions extends WrapperOptions {
  /** The least score that passes: 1 supports, 0.5 mixed, 0 all else; default 1. */
  threshold?: number
}

/**
 * Makes the function for `type: javascript`. Page and claim are `source_url` and `claim` of the assertion's `config` or of the
 * test's `vars`; else the one link in the output, and the output without it. Throws CountersignError where the output is not
 * at fault; promptfoo reports that as an error of the assertion.
 */
export function citationAssertion({ threshold = 1, ...options }: AssertionOptions) {
  return async (output: unknown, context: AssertionContext = {}): Promise<GradingResult> => {
    const text = typeof output === 'string' ? output : JSON.stringify(output)
    const { score, reason, verdict, failure } = await grade(text, questionIn(context), options)
    return { pass: score !== null && score >= threshold, score: score ?? 0, reason, metadata: { verdict, failure } }
  }
}

function questionIn({ vars, config }: AssertionContext): Partial<Question> {
  const wordOf = (name: keyof Question) => {
    const value = config?.[name] ?? vars?.[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  return { source_url: wordOf('source_url'), claim: wordOf('claim') }
}
