// The form of a model's name in the procedure of a result.
import { createHash } from 'node:crypto'

/**
 * A model's id as part of a procedure: unchanged, or, if it is long or has other characters, cut and followed by a
 * digest.
 */
export function modelName(model: string): string {
  const plain = model.replace(/[^A-Za-z0-9._:/@-]/g, '_')
  if (plain === model && model.length <= LONGEST) return model
  const digest = createHash('sha256').update(model).digest('hex').slice(0, 8)
  return `${plain.slice(0, LONGEST - digest.length - 1)}~${digest}`
}

const LONGEST = 40
