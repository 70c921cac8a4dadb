// What the page /verify and its worker need to know of the verifier that the service serves, and what the two say to each other.
import type { LocalAssessment } from 'countersign-verifier'

export interface ServedFile {
  path: string
  bytes: number
  sha256: string
}

export interface ServedVerifier {
  /** The procedure as `methodology_version` names it. */
  procedure: string
  /** The path of the worker's script. */
  worker: string
  weights: ServedFile
  /** Tokenizer and settings. */
  tables: ServedFile
  /** The program in WebAssembly that runs the model. */
  runtime: ServedFile
}

export interface RecomputationTask {
  verifier: ServedVerifier
  text: string
  claims: readonly string[]
}

export interface Progress {
  /** The same during one step, because it is read out whenever it changes. */
  step: string
  /** How far the step is; null where its length is not known. */
  done: { count: number; of: number; words: string } | null
}

/** Any number of `progress`, then one of the others. */
export type RecomputationNews = { progress: Progress } | { assessments: LocalAssessment[] } | { problem: string }
