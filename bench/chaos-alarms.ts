// Provokes every alarm of the runbook once: it must appear in `status`, in the metrics and in the log, and end after the
// cure in docs/operations.md. The duration in an alarm's `for` is skipped.
import { setTimeout as pause } from 'node:timers/promises'
import { holds } from './alarms/promql.ts'
import type { Provocation } from './alarms/provocation.ts'
import { PROVOCATIONS } from './alarms/provocations.ts'
import { readRules, warningOf } from './alarms/rules.ts'
import { openStage, type Stage } from './alarms/stage.ts'
import type { Lab } from './lab.ts'
import { printHeading, printNote, printRows } from './table.ts'

/**
 * Milliseconds until an alarm must appear everywhere, and until it must end. A killed process counts as alive for 20
 * seconds.
 */
const SEEN_MS = 100_000
const CURED_MS = 150_000
const SCRAPE_MS = 1000
/** Processes publish what they count every five seconds. */
const PUBLISHED_MS = 6000

interface Finding {
  alarm: string
  provoked: boolean
  status: boolean
  metrics: boolean
  log: boolean
  cured: boolean
}

/** @param alarms only these, with those of the same cause */
export async function chaosAlarms(lab: Lab, { alarms }: { alarms?: string[] }): Promise<void> {
  const rules = new Map(readRules().map(({ alarm, expr }) => [alarm, expr]))
  const chosen = PROVOCATIONS.filter((one) => !alarms || one.alarms.some((alarm) => alarms.includes(alarm)))
  printHeading('alarms', `${chosen.flatMap((one) => one.alarms).length} of ${rules.size} alarms, each provoked once`)
  await using stage = await openStage(lab)
  const findings: Finding[] = []
  for (const provocation of chosen) findings.push(...(await play(stage, provocation, rules)))
  for (const alarm of rules.keys())
    if (!findings.some((one) => one.alarm === alarm) && !alarms)
      findings.push({ alarm, provoked: false, status: false, metrics: false, log: false, cured: false })
  const mark = (is: boolean) => (is ? 'yes' : 'NO')
  printRows([
    ['alarm', 'provoked', 'status', 'metrics', 'log', 'cured'],
    ...findings.map(({ alarm, provoked, status, metrics, log, cured }): [string, ...string[]] => [
      alarm,
      ...[provoked, status, metrics, log, cured].map(mark),
    ]),
  ])
  if (!findings.every((one) => one.provoked && one.status && one.metrics && one.log && one.cured)) process.exitCode = 1
}

async function play(stage: Stage, provocation: Provocation, rules: Map<string, string>): Promise<Finding[]> {
  const { alarms, means, cure } = provocation
  const findings = alarms.map(
    (alarm): Finding => ({ alarm, provoked: false, status: false, metrics: false, log: false, cured: false }),
  )
  const began = performance.now()
  const note = (error: unknown) =>
    printNote(`${alarms.join(', ')}: ${error instanceof Error ? error.message : String(error)}`)
  try {
    await settle(stage)
    stage.lines.length = 0
    await provocation.provoke(stage)
    for (const one of findings) one.provoked = true
    await watch(stage, provocation, findings, rules)
  } catch (error) {
    note(error)
  }
  try {
    await provocation.heal(stage)
    const isCured = await isOver(stage, alarms, rules)
    for (const one of findings) one.cured = isCured
  } catch (error) {
    note(error)
  }
  const missing = findings.flatMap(({ alarm, ...places }) =>
    Object.entries(places).flatMap(([place, is]) => (is ? [] : [`${alarm}: ${place}`])),
  )
  const said = missing.length === 0 ? 'seen and cured' : `MISSING ${missing.join(', ')}`
  const seconds = Math.round((performance.now() - began) / 1000)
  printNote(`${alarms.join(', ')}: ${means}. Cure: ${cure}. ${said}, ${seconds} s`)
  return findings
}

/** Waits until a purchase succeeds and the previous provocation no longer counts. */
async function settle(stage: Stage) {
  await stage.buy()
  await pause(PUBLISHED_MS)
  await stage.passTime()
}

/** Checks everywhere until each alarm has appeared, or the time is over. */
async function watch(stage: Stage, provocation: Provocation, findings: Finding[], rules: Map<string, string>) {
  const deadline = performance.now() + SEEN_MS
  const events = Object.values(provocation.events ?? {})
  for (;;) {
    await stage.scrape()
    for (const one of findings) {
      one.metrics ||= holds(rules.get(one.alarm)!, stage.scrapes)
      const isLogged = (test: (line: Record<string, unknown>) => boolean) => stage.lines.some(test)
      const isWarned = isLogged(({ event, warning }) => event === 'warning' && warning === warningOf(one.alarm))
      one.log ||= (provocation.seenInStatus !== undefined || isWarned) && events.every(isLogged)
    }
    if (!findings.every(({ status }) => status)) {
      const seen = provocation.seenInStatus
        ? (await provocation.seenInStatus(stage)) && findings.map(({ alarm }) => warningOf(alarm))
        : await readWarnings(stage)
      for (const one of findings) one.status ||= seen !== false && seen.includes(warningOf(one.alarm))
    }
    if (findings.every(({ metrics, log, status }) => metrics && log && status)) return
    if (performance.now() > deadline) return
    await pause(SCRAPE_MS)
  }
}

/** Whether work succeeds again and, by what is counted from then on, no alarm fires and no warning appears. */
async function isOver(stage: Stage, alarms: readonly string[], rules: Map<string, string>): Promise<boolean> {
  const deadline = performance.now() + CURED_MS
  await settle(stage)
  await stage.buy()
  await pause(PUBLISHED_MS)
  for (;;) {
    await stage.scrape()
    const warnings = await readWarnings(stage)
    const open = alarms.filter(
      (alarm) => holds(rules.get(alarm)!, stage.scrapes) || warnings.includes(warningOf(alarm)),
    )
    if (open.length === 0) return true
    if (performance.now() > deadline) return false
    await pause(SCRAPE_MS)
  }
}

/** Names of the warnings in `status`. */
async function readWarnings(stage: Stage): Promise<string[]> {
  const { stdout, stderr } = await stage.cli('status', '--json')
  if (stdout === '') throw new Error(`status: ${stderr}`)
  return (JSON.parse(stdout) as { warnings: { name: string }[] }).warnings.map(({ name }) => name)
}
