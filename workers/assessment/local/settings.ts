// The settings of the verifier that come with its weights. A change of one of them, or of the procedure in this folder, is
// another `methodology`.
import type { WindowSize } from './windows.ts'

/** The content of `model/config.json`; the model card explains each number. */
export interface Settings {
  methodology: string
  weights_sha256: string
  tokenizer_sha256: string
  labels: readonly string[]
  /** Tokens of a pair at most, and the ids around its claim and its passage. */
  tokens: number
  first: readonly number[]
  between: readonly number[]
  last: readonly number[]
  windows: WindowSize
  /** Probabilities from which on a side decides. */
  thresholds: { supports: number; contradicts: number }
  /** The probability from which on a side is a lean. */
  lean: number
  /** Quotes for each side at most. */
  quotes: number
  /** Words of pages that repeat a claim in order to refute it. */
  page_checks_claims: readonly string[]
}

/** The name of the procedure in `methodology_version`: the settings' version and the first 16 digits of the weights' digest. */
export function procedureOf({ methodology, weights_sha256 }: Pick<Settings, 'methodology' | 'weights_sha256'>): string {
  return `${methodology}+${weights_sha256.slice(0, 16)}`
}
