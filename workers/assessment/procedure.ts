// The names of the assessment procedures, a part of every `methodology_version`. Imports nothing that uses a model or reads
// a page, because the web process loads it too.
import { createHash } from 'node:crypto'
import { procedureOf } from './local/settings.ts'
import { settings } from './local/weights.ts'
import { PROMPT_VERSION } from './semantic/prompt.ts'

/**
 * Same claim, same text, same name: same assessment. Sentences and names of months are ICU's and the classes of
 * characters Unicode's. After a change of a rule or a weight, increase the first number.
 */
export const LITERAL_PROCEDURE = `literal-11+icu-${process.versions.icu}+unicode-${process.versions.unicode}`

/** Names the procedure of the verifier and its weights. It needs no version of Unicode: the verifier brings its own. */
export const LOCAL_PROCEDURE = procedureOf(settings)

/**
 * Names the model, the prompt, how much text goes into one question, and the rules around it: a change of any is another procedure.
 * Sentences are ICU's and the classes of characters Unicode's. After a change of a rule, increase the first number.
 */
export function semanticProcedure(model: string, windowTokens: number, promptVersion: string = PROMPT_VERSION): string {
  const { icu, unicode } = process.versions
  return `semantic-14+${modelName(model)}+prompt-${promptVersion}+w${windowTokens}+icu-${icu}+unicode-${unicode}`
}

/** A model's id as part of a procedure: unchanged, or, if it is long or has other characters, cut and followed by a digest. */
function modelName(model: string): string {
  const plain = model.replace(/[^A-Za-z0-9._:/@-]/g, '_')
  if (plain === model && model.length <= LONGEST) return model
  const digest = createHash('sha256').update(model).digest('hex').slice(0, 8)
  return `${plain.slice(0, LONGEST - digest.length - 1)}~${digest}`
}

/** UTF-16 units of a model's name. */
const LONGEST = 40
