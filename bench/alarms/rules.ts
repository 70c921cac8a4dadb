// The alarms of ops/prometheus-rules.yaml: their names and expressions.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = join(import.meta.dirname, '../../ops/prometheus-rules.yaml')

export interface Rule {
  alarm: string
  expr: string
}

export function readRules(): Rule[] {
  return [...readFileSync(FILE, 'utf8').matchAll(/- alert: (\w+)\n +expr: (.*)\n/g)].map(
    ([, alarm = '', text = '']) => ({
      alarm,
      expr: text.replace(/^(['"])(.*)\1$/, '$2'),
    }),
  )
}

/** The name of an alarm's warning in `status` and log: `queue_behind` of CountersignQueueBehind. */
export function warningOf(alarm: string): string {
  return alarm
    .replace(/^Countersign/, '')
    .replace(/(?<=[a-z])(?=[A-Z])/g, '_')
    .toLowerCase()
}
