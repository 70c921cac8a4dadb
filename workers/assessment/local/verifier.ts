// The model: reads one claim and one passage, and answers three logits. It runs on WebAssembly in one thread, so that every
// machine and every browser gives the same bits.
import { Tokenizer } from '@huggingface/tokenizers'
import { graphOf } from './graph.ts'
import * as ort from './runtime/ort.wasm.bundle.min.mjs'
import type { Settings } from './settings.ts'

export interface VerifierFiles {
  /** The ONNX model. Its bytes are referred to, and must not change while the verifier is in use. */
  model: Uint8Array
  /** The parsed `tokenizer.json`. */
  tokenizer: object
  settings: Settings
  /** The bytes of onnxruntime's WebAssembly, for browsers. Node reads them in `runtime/`. */
  runtime?: Uint8Array
}

export interface Verifier extends AsyncDisposable {
  readonly settings: Settings
  /**
   * Logits of supports, contradicts and insufficient for a claim and a passage, each pair alone: no other pair can change
   * them. A passage that is too long is cut at its end.
   */
  logits(claim: string, passage: string): Promise<number[]>
}

/** The index of a side in logits and probabilities. */
export const SUPPORTS = 0
export const CONTRADICTS = 1

/** Tokens that a passage keeps, however long the claim. */
const LEAST_PASSAGE = 8
/** UTF-16 units of a passage that are read. Its first 192 tokens end long before, except in made-up words. */
const LONGEST_PASSAGE = 20_000

/** Loads the model, which takes about a second. Throws if the bytes are no model that the runtime can read. */
export async function loadVerifier({ model, tokenizer, settings, runtime }: VerifierFiles): Promise<Verifier> {
  if (runtime) ort.env.wasm.wasmBinary = runtime
  ort.env.wasm.numThreads = 1
  const session = await ort.InferenceSession.create(graphOf(model, WEIGHTS), {
    executionProviders: ['wasm'],
    // The level is part of the procedure: another one gives other last digits.
    graphOptimizationLevel: 'all',
    externalData: [{ path: WEIGHTS, data: model }],
  })
  const words = new Tokenizer(tokenizer, {})
  const tokensOf = (text: string): number[] => words.encode(text, { add_special_tokens: false }).ids
  let last = { claim: '', tokens: [] as number[] }
  return {
    settings,
    async logits(claim, passage) {
      if (last.claim !== claim) last = { claim, tokens: tokensOf(claim) }
      const ids = pairOf(last.tokens, tokensOf(passage.slice(0, LONGEST_PASSAGE)), settings)
      const input = new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length])
      const { logits } = await session.run({ input_ids: input })
      if (!(logits?.data instanceof Float32Array)) throw new Error('the model answers no logits')
      return Array.from(logits.data)
    },
    [Symbol.asyncDispose]: () => session.release(),
  }
}

/** The ids of a pair: the passage is cut where the pair would pass the limit, the claim only where it leaves no room. */
function pairOf(claim: readonly number[], passage: readonly number[], settings: Settings): number[] {
  const { tokens, first, between, last } = settings
  const room = tokens - first.length - between.length - last.length
  const a = claim.slice(0, room - LEAST_PASSAGE)
  const b = passage.slice(0, room - a.length)
  return [...first, ...a, ...between, ...b, ...last]
}

const WEIGHTS = 'model.onnx'
