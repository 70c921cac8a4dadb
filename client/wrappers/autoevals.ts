// A scorer of the shape that autoevals and Braintrust take: 1 where the page that an output cites supports it. The page is
// fetched through the service.
import { grade } from './grading.ts'
import type { Question, WrapperOptions } from './purchase.ts'

export type { Question, WrapperOptions } from './purchase.ts'

/** autoevals' Score. */
export interface CitationScore {
  name: string
  /** 1 supports, 0.5 mixed, 0 all else; null where no verdict was given. */
  score: number | null
  metadata: Record<string, unknown>
}

export type CitationScorerArgs = { output: string; expected?: string } & Partial<Question>

/**
 * Makes the scorer. Page and claim are the arguments `source_url` and `claim`; else the one link in the output, and the output
 * without it. Throws CountersignError where the output is not at fault.
 */
export function citationScorer(options: WrapperOptions) {
  return async function Citation({ output, source_url, claim }: CitationScorerArgs): Promise<CitationScore> {
    const { score, ...metadata } = await grade(output, { source_url, claim }, options)
    return { name: 'Citation', score, metadata }
  }
}
