// The log lines of a service, for tests that wait for one of them.

export type Line = Record<string, unknown> & { event?: string }

export function openLogLines() {
  const lines: Line[] = []
  const readers = new Set<(line: Line) => void>()
  const matches = (line: Line, event: string, fields: Line) =>
    line.event === event && Object.entries(fields).every(([name, value]) => line[name] === value)
  let taken = 0
  return {
    lines,
    write(text: string) {
      const line = JSON.parse(text) as Line
      lines.push(line)
      for (const read of readers) read(line)
    },
    /** The first such line after the one that the previous call answered. */
    next(event: string, fields: Line = {}): Promise<Line> {
      const index = lines.findIndex((line, at) => at >= taken && matches(line, event, fields))
      if (index >= 0) {
        taken = index + 1
        return Promise.resolve(lines[index] as Line)
      }
      const { promise, resolve } = Promise.withResolvers<Line>()
      const read = (line: Line) => {
        if (!matches(line, event, fields)) return
        readers.delete(read)
        taken = lines.indexOf(line) + 1
        resolve(line)
      }
      readers.add(read)
      return promise
    },
  }
}
