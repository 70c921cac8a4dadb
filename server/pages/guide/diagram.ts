// State diagrams of documents (Mermaid's stateDiagram-v2) as tables of their transitions. A table needs no script and no layout of
// boxes and arrows, is read by a screen reader in order, fits a narrow page, and can be searched.

interface Transition {
  /** Null: the diagram begins there. */
  from: string | null
  /** Null: the diagram ends there. */
  to: string | null
  when: string
}

const ARROW = /^(\[\*\]|\w+) --> (\[\*\]|\w+)(?:: (.+))?$/

/** Null for another kind of diagram, and for one with a line that is no transition. */
export function readTransitions(text: string): readonly Transition[] | null {
  const [kind, ...lines] = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (kind !== 'stateDiagram-v2' || lines.length === 0) return null
  const found = lines.map((line) => ARROW.exec(line))
  if (found.includes(null)) return null
  const state = (name = '') => (name === '[*]' ? null : name)
  return found.map((parts) => ({ from: state(parts?.[1]), to: state(parts?.[2]), when: parts?.[3] ?? '' }))
}

/** Markup. The transitions of one state are together. @param toMarkup makes text safe in markup */
export function renderTransitions(transitions: readonly Transition[], toMarkup: (text: string) => string): string {
  const groups = [...Map.groupBy(transitions, ({ from }) => from)]
  const name = (state: string) => `<code>${toMarkup(state)}</code>`
  const body = groups.map(([from, all]) => {
    const rows = all.map(({ to, when }, n) => {
      const heading =
        n === 0
          ? `<th scope="rowgroup" role="rowheader" rowspan="${all.length}">${from === null ? 'begins' : name(from)}</th>`
          : ''
      const target = to === null ? 'ends' : to === from ? `stays ${name(to)}` : name(to)
      const cell = (column: string, markup: string) => `<td role="cell" data-column="${column}">${markup}</td>`
      return `<tr role="row">${heading}${cell('To', target)}${cell('When', toMarkup(when))}</tr>`
    })
    return `<tbody role="rowgroup">${rows.join('')}</tbody>`
  })
  const head = ['From', 'To', 'When'].map((title) => `<th scope="col" role="columnheader">${title}</th>`).join('')
  return (
    '<div class="table stacks short transitions" tabindex="0" role="region" aria-label="States and their transitions"><table role="table">' +
    `<thead role="rowgroup"><tr role="row">${head}</tr></thead>${body.join('')}</table></div>\n`
  )
}
