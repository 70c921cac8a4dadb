// The examples that pages show: calls of every operation with their answers, and results. All of them are real answers of
// this service: test/pages/examples.ts records them, and a test compares them with a new run.
import { readFile } from 'node:fs/promises'
import type { VerificationResult } from '../../../client/verification.ts'
import type { AssessmentKind } from '../../interface/assessment.ts'

/** In place of the bytes of a file, as the body of an example. */
export const A_FILE = '(the bytes of the file)'

/** One call and its answer. `{base_url}` stands for the address of the service; a credential for its name, as in a shell. */
export interface Example {
  /** With its parameters and query. */
  path: string
  headers: Record<string, string>
  /** JSON, or text where the operation takes bytes. */
  request?: unknown
  status: number
  /** Those that a caller needs. */
  answerHeaders: Record<string, string>
  /** JSON, text where the operation answers bytes, or null. */
  body: unknown
}

/** By the name of the operation. */
export type Examples = Readonly<Record<string, Example>>
export type ExampleResults = Readonly<Record<AssessmentKind, VerificationResult>>

/** Read once, when the first page needs it. */
export const findExamples = kept<Examples>('examples.json')
export const findExampleResults = kept<ExampleResults>('example-results.json')

function kept<T>(name: string): () => Promise<T> {
  let read: Promise<T> | undefined
  return () => {
    // The cast is safe: the file belongs to the release, and a test compares it with what the service answers.
    read ??= readFile(new URL(name, import.meta.url), 'utf8').then((text) => JSON.parse(text) as T)
    return read
  }
}
