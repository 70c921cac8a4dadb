// What is wrong with the values that a person's browser sent, in words for a page. Programs get the messages of the schemas.
import { z } from 'zod'

export interface InputFault {
  /** As the caller knows the value, for example `from`; null where the whole input is meant. */
  name: string | null
  /** A sentence about the value. */
  words: string
}

type Issue = z.core.$ZodIssue

/** The faults that a schema found, where the error has them as its cause; undefined for any other error. */
export function inputFaults(error: unknown): InputFault[] | undefined {
  const cause = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof z.ZodError)) return undefined
  return cause.issues.map((issue) => ({ name: issue.path.join('.') || null, words: wordsOf(issue) }))
}

/** How messages of zod itself begin. Any other is a sentence of the schema, written for people. */
const OF_ZOD = /^(Invalid|Too (big|small)|Unrecognized)\b/

function wordsOf(issue: Issue): string {
  const { message } = issue
  if (!OF_ZOD.test(message)) return sentence(message)
  switch (issue.code) {
    case 'invalid_type':
      return message.endsWith('received undefined')
        ? 'It is missing.'
        : `It must be ${TYPES[issue.expected] ?? 'of another kind'}.`
    case 'invalid_value':
      return `It must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.map(String).join(', ')}.`
    case 'too_small':
      return bound(issue.origin, Number(issue.minimum), 'least')
    case 'too_big':
      return bound(issue.origin, Number(issue.maximum), 'most')
    case 'invalid_format':
      return `It is not ${FORMATS[issue.format] ?? 'in the form that is needed'}.`
    case 'not_multiple_of':
      return `It must be a multiple of ${issue.divisor}.`
    case 'unrecognized_keys':
      return `Nothing by this name is taken: ${issue.keys.join(', ')}.`
    case 'invalid_union':
      return 'It is in none of the forms that are taken.'
    default:
      return 'It cannot be used.'
  }
}

function bound(origin: string, limit: number, side: 'least' | 'most'): string {
  const unit = UNITS[origin]
  if (unit === undefined) return `It must be ${limit} or ${side === 'least' ? 'more' : 'less'}.`
  if (side === 'least' && limit === 1) return 'It must not be empty.'
  return `It must have at ${side} ${limit} ${unit}.`
}

/** A message such as `must be in the future` as a sentence. */
export const sentence = (message: string) =>
  `${/^[a-z]/.test(message) ? 'It ' : ''}${message}${/[.!?]$/.test(message) ? '' : '.'}`

const UNITS: Readonly<Record<string, string>> = {
  string: 'characters',
  array: 'entries',
  set: 'entries',
  map: 'entries',
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a whole number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object with named values',
}

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'an id',
  url: 'a web address',
  datetime: 'a time such as 2026-11-27T12:00:00Z',
}
