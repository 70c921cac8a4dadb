// The form of a model's answer: numbers of lines and words of closed lists, nothing else. Every part of it is checked
// before use.
import { z } from 'zod'

const BASES = ['stated', 'combined', 'other_value', 'opposite', 'partly', 'reported', 'unsure', 'silent'] as const
export type Basis = (typeof BASES)[number]

const stance = z.enum(['supports', 'contradicts', 'mentions'])
const verdict = z.enum(['supports', 'contradicts', 'mixed', 'insufficient_evidence'])

/** Evidence comes before the verdict, so that a model, which writes in order, finds evidence before it decides. */
const answer = z.object({
  evidence: z.array(z.object({ from: z.int(), to: z.int(), stance })),
  suspicious: z.array(z.int()),
  basis: z.enum(BASES),
  verdict,
})
export type Answer = Omit<z.output<typeof answer>, 'basis'> & { basis: Basis | null }
export type Verdict = Answer['verdict']

const BOUNDS: ReadonlySet<string> = new Set(['$schema', 'minimum', 'maximum', 'default'])

/** The schema for structured output. It has no bounds and no patterns, because some servers do not support them. */
export const answerSchema = withoutBounds(z.toJSONSchema(answer, { io: 'output' })) as Record<string, unknown>

/** The answer cannot be used: it is no JSON, breaks the schema, or names no line that was shown. */
export class UnusableAnswerError extends Error {
  override name = 'UnusableAnswerError'
}

/**
 * Reads the answer of a model. Not every server enforces the schema: prose or a fence around the object, missing lists,
 * a missing basis and further members are accepted. Everything else throws UnusableAnswerError.
 */
export function readAnswer(written: string): Answer {
  const lenient = answer.extend({
    evidence: answer.shape.evidence.optional().default([]),
    suspicious: answer.shape.suspicious.optional().catch([]).default([]),
    basis: answer.shape.basis.nullable().catch(null),
  })
  const parsed = lenient.safeParse(jsonIn(written))
  if (!parsed.success) throw new UnusableAnswerError('the answer is not of the form asked for')
  return parsed.data
}

function jsonIn(written: string): unknown {
  if (written.length > LONGEST_ANSWER) throw new UnusableAnswerError('the answer is too long')
  const [start, end] = [written.indexOf('{'), written.lastIndexOf('}')]
  if (start < 0 || end < start) throw new UnusableAnswerError('the answer holds no JSON object')
  try {
    return JSON.parse(written.slice(start, end + 1))
  } catch (cause) {
    throw new UnusableAnswerError('the answer is no JSON', { cause })
  }
}

function withoutBounds(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutBounds)
  if (schema === null || typeof schema !== 'object') return schema
  const kept = Object.entries(schema).filter(([key]) => !BOUNDS.has(key))
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutBounds(value)]))
}

/** UTF-16 units; the longest honest answer has a tenth. */
const LONGEST_ANSWER = 20_000
