// Tables and numbers as Markdown has them.

export const count = (number: number) => number.toLocaleString('en')

/** @param numbers columns at the end that are aligned to the right */
export function table(headings: readonly string[], rows: readonly (readonly string[])[], numbers = 0): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const rule = headings.map((_, column) => (column >= headings.length - numbers ? '---:' : '---'))
  return [line(headings), line(rule), ...rows.map(line)].join('\n')
}
