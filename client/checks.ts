// Runs the checks of a verification and reports them: for every input the same names in the same order.
import { describe, jsonFaults } from './json.ts'
import type { Shape } from './shape.ts'

export interface Check {
  name: string
  ok: boolean
  /** Why it failed, or what a check that passed did not cover. */
  detail?: string
}

export interface Verification {
  /** True only if every check passed. */
  ok: boolean
  checks: Check[]
}

/** A rule returns a fault, nothing when it passes, or a note on what it could not cover. */
export type Rule<T> = readonly [name: string, judge: (subject: T) => string | Note | null]

export class Note {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * Runs every rule over an untrusted value. A rule gets plain, well-formed JSON of the right shape. Without that, the
 * rule is listed as failed, because an unchecked property is not proved.
 */
export function examine<T>(value: unknown, shape: Shape, rules: readonly Rule<T>[]): Verification {
  const faults = jsonFaults(value)
  const faultOf = (kind: string) => faults.filter((fault) => fault.kind === kind).map(describe)[0] ?? null
  const wrongShape = faults.length > 0 ? 'not checked: it is not well-formed JSON data' : shape(value, '')
  const checks = [
    check('plain_json', faultOf('not_json')),
    check('well_formed_unicode', faultOf('not_unicode')),
    check('shape', wrongShape),
    ...rules.map(([name, judge]) =>
      check(name, wrongShape === null ? judge(value as T) : 'not checked: the shape is wrong'),
    ),
  ]
  return { ok: checks.every(({ ok }) => ok), checks }
}

function check(name: string, verdict: string | Note | null): Check {
  if (verdict === null) return { name, ok: true }
  return verdict instanceof Note ? { name, ok: true, detail: verdict.text } : { name, ok: false, detail: verdict }
}
