// The type of a provocation of alarms, and what provocations expect, wait for and end.
import { setTimeout as pause } from 'node:timers/promises'
import type { Line, Stage } from './stage.ts'

export interface Provocation {
  /** The alarms that have this cause. */
  alarms: readonly string[]
  /** In words. */
  means: string
  provoke(stage: Stage): Promise<void>
  /** Events that the log must have, in addition to the warning of each alarm. */
  events?: Readonly<Record<string, (line: Line) => boolean>>
  /** As the runbook has it. */
  cure: string
  heal(stage: Stage): Promise<void>
  /** Replaces the check of the warnings in `status`, if there can be none. */
  seenInStatus?(stage: Stage): Promise<boolean>
}

const TIMEOUT_MS = 60_000

/** A line of the log with this event, and with these members. */
export const event = (name: string, more: Line = {}) => [
  name,
  (line: Line) => line.event === name && Object.entries(more).every(([key, value]) => line[key] === value),
]
/** For `Provocation.events`. @param all each from `event` */
export const events = (...all: unknown[][]) => Object.fromEntries(all) as Record<string, (line: Line) => boolean>

export async function endWeb(stage: Stage) {
  const { web } = stage
  stage.web = null
  await web?.[Symbol.asyncDispose]()
}

export async function end(stage: Stage, worker: Stage['workers'][number]) {
  stage.workers = stage.workers.filter((one) => one !== worker)
  await worker[Symbol.asyncDispose]()
}

/** Throws unless it ends with that status. */
export async function command(stage: Stage, code: number, ...args: string[]) {
  const ran = await stage.cli(...args)
  if (ran.code !== code) throw new Error(`${args.join(' ')} ended with ${ran.code}: ${ran.stdout}${ran.stderr}`)
  return ran
}

export function expect(status: number, expected: number) {
  if (status !== expected) throw new Error(`the call was answered ${status}, not ${expected}`)
}

export async function until(isThere: () => Promise<boolean>) {
  const deadline = performance.now() + TIMEOUT_MS
  while (!(await isThere())) {
    if (performance.now() > deadline) throw new Error('it did not come in time')
    await pause(500)
  }
}
