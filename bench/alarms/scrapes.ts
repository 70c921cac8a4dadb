// The scrapes of /metrics in order, as Prometheus would store them.

export interface Sample {
  metric: string
  labels: Record<string, string>
  value: number
}

export interface Series {
  labels: Record<string, string>
  /** `at`: seconds. In order. */
  points: { at: number; value: number }[]
}

export class Scrapes {
  #all: { at: number; samples: Sample[] }[] = []

  /** @param text of a scrape; null: it failed, and no series is present. @param at seconds */
  add(text: string | null, at: number) {
    this.#all.push({ at, samples: text === null ? [] : readSamples(text) })
  }

  /** Deletes all earlier scrapes. */
  clear() {
    this.#all = []
  }

  /** The series of the last scrape. */
  instant(metric: string): Sample[] {
    return this.#all.at(-1)?.samples.filter((sample) => sample.metric === metric) ?? []
  }

  /** The series of the last seconds. */
  range(metric: string, seconds: number): Series[] {
    const since = (this.#all.at(-1)?.at ?? 0) - seconds
    const series = new Map<string, Series>()
    for (const { at, samples } of this.#all.filter((scrape) => scrape.at >= since))
      for (const { labels, value } of samples.filter((sample) => sample.metric === metric)) {
        const key = JSON.stringify(labels)
        const one = series.get(key) ?? { labels, points: [] }
        one.points.push({ at, value })
        series.set(key, one)
      }
    return [...series.values()]
  }
}

/** Samples of the text format of Prometheus. Throws for a line of another form. */
export function readSamples(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    if (line === '' || line.startsWith('#')) return []
    const [, metric, braces = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (metric === undefined) throw new Error(`no line of Prometheus: ${line}`)
    const labels: Record<string, string> = {}
    for (const [, name = '', content = ''] of braces.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      labels[name] = content.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped))
    return [{ metric, labels, value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value) }]
  })
}
