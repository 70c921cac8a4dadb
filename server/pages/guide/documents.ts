// The documents of docs/, and the few beside it, as pages show them: Markdown to HTML, with raw HTML escaped and links
// between documents replaced by links to their pages. Files that an installation leaves out have no page.
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Marked, type RendererObject, type Tokens } from 'marked'
import { getHeadingList, gfmHeadingId } from 'marked-gfm-heading-id'
import { codeWords } from '../../../client/page/code-words.ts'
import { counted, hasLongWord } from '../../../client/page/parts.ts'
import { readTransitions, renderTransitions } from './diagram.ts'
import { lengthOf } from './length.ts'
import { type Section, sectionsOf } from './sections.ts'

export interface Document {
  /** `/guide/...` */
  path: string
  /** Its first heading, as text. */
  title: string
  /** Its first paragraph, as text. */
  summary: string
  /** Markup made here from Markdown: safe to insert into a page. */
  markup: string
  /** Headings of the second level, for the navigation within the document. */
  headings: readonly { id: string; text: string }[]
  sections: readonly Section[]
}

const ROOT = join(import.meta.dirname, '../../..')

/** Documents outside docs/: a file, and the name of its page. */
const BESIDE: Readonly<Record<string, string>> = {
  'client/README.md': 'client',
  'CHANGELOG.md': 'changelog',
  'SECURITY.md': 'security',
}

let read: Promise<ReadonlyMap<string, Document>> | undefined

/** By the path of its page. Read once, because documents do not change while a process runs. */
export function findDocuments(): Promise<ReadonlyMap<string, Document>> {
  read ??= readDocuments()
  return read
}

async function readDocuments(): Promise<ReadonlyMap<string, Document>> {
  const files = globSync(['docs/**/*.md', ...Object.keys(BESIDE)], { cwd: ROOT }).sort()
  const pages = new Map(files.map((file) => [file, pageOf(file)]))
  const texts = await Promise.all(files.map(async (file) => [file, await readFile(join(ROOT, file), 'utf8')] as const))
  const titles = new Map(texts.map(([file, text]) => [pageOf(file), /^# (.+)$/m.exec(text)?.[1] ?? file]))
  const documents = new Map<string, Document>()
  for (const [file, text] of texts) {
    const document = render(file, text, { pages, titles })
    documents.set(document.path, document)
    // Lets other work run between two documents: all together take some tenths of a second.
    await setImmediate()
  }
  return documents
}

/** docs/guide/buying.md and docs/NOTICE.md are /guide/buying and /guide/notice. */
function pageOf(file: string): string {
  return `/guide/${
    BESIDE[file] ??
    file
      .replace(/^docs\/(guide\/)?/, '')
      .replace(/\.md$/, '')
      .toLowerCase()
  }`
}

interface Targets {
  /** The path of the page of each file. */
  pages: ReadonlyMap<string, string>
  /** The title of the page at each path. */
  titles: ReadonlyMap<string, string>
}

function render(file: string, text: string, targets: Targets): Document {
  const marked = new Marked(gfmHeadingId(), { renderer: rendererFor(file, targets) })
  const parsed = marked.parse(text, { async: false })
  const headings = getHeadingList().map(({ id, level, raw }) => ({ id, level, text: plain(raw) }))
  const tokens = new Marked().lexer(text)
  const isLong = lengthOf(tokens) > MOST_LENGTH
  const chapters = headings.filter(({ level }) => level === 2).length > 1 ? 2 : 3
  const markup = isLong ? fold(parsed, chapters) : parsed
  return {
    path: pageOf(file),
    title: headings.find(({ level }) => level === 1)?.text ?? file,
    summary: plain(text.split(/\n\s*\n/).find((part) => /^(?!```)[^#<|-]/.test(part)) ?? ''),
    markup,
    headings: headings.filter(({ level }) => level === 2),
    sections: sectionsOf(tokens, headings),
  }
}

/**
 * A document that is longer shows its chapters folded, in pixels of a narrow window: open, its page would have more than twelve screens
 * there, of which the frame takes nearly three.
 */
const MOST_LENGTH = 7000

/**
 * Each chapter as a part that opens at its heading. The id of the heading is that of the text below it, so that a link to it opens the
 * chapter: browsers open what is folded around the target of a link.
 * @param level of the headings of chapters
 */
function fold(markup: string, level: 2 | 3): string {
  const [before = '', ...chapters] = markup.split(new RegExp(`(?=<h${level} id=)`))
  const heading = new RegExp(`^<h${level} id="([^"]*)">(.*?)</h${level}>`, 's')
  const folded = chapters.map((chapter) => {
    const [whole = '', id = '', words = ''] = heading.exec(chapter) ?? []
    const text = chapter.slice(whole.length)
    const tables = chapter.split('<table').length - 1
    const holds = tables === 0 ? '' : ` <span class="detail">${counted(tables, 'table')}</span>`
    return `<details class="chapter"><summary><h${level}>${words}</h${level}>${holds}</summary><div id="${id}">${text}</div></details>`
  })
  return `${before}${tablesIn(chapters)}${folded.join('\n')}`
}

/** Links to the sections with tables, because readers do not look for figures in what is folded. Each link opens what it leads to. */
function tablesIn(chapters: readonly string[]): string {
  const sections = chapters.join('').split(/(?=<h[2-4] id=)/)
  const links = sections.flatMap((section) => {
    const [, id, words = ''] = /^<h[2-4] id="([^"]*)">(.*?)<\/h[2-4]>/s.exec(section) ?? []
    if (id === undefined || !section.includes('<table')) return []
    return [`<li><a href="#${id}">${words.replaceAll(/<[^>]+>/g, '')}</a></li>`]
  })
  if (links.length === 0) return ''
  return `<nav class="tables" aria-label="Tables on this page"><p>The tables of this page, in the chapters below:</p><ul>${links.join('')}</ul></nav>`
}

/** Markdown of one paragraph without its marks. */
function plain(markdown: string): string {
  return markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
}

function rendererFor(file: string, { pages, titles }: Targets): RendererObject {
  let tables = 0
  return {
    html: ({ text }) => (text.startsWith('<!--') ? '' : escapeText(text)),
    image: ({ text }) => escapeText(text),
    codespan: ({ text }) => {
      const { isLong, words } = codeWords(text)
      const parts = words.map((one) => (one.isWhole ? `<span>${escapeText(one.text)}</span>` : escapeText(one.text)))
      return `<code${isLong ? ' class="long"' : ''}>${parts.join('')}</code>`
    },
    link({ href, text, tokens }) {
      const target = targetOf(href, file, pages)
      // A reader of pages does not see the files that the text of a link may name.
      const title = /^`?[\w./-]+\.md`?$/.test(text) && titles.get(target?.split('#')[0] ?? '')
      const words = title ? escapeText(plain(title)) : this.parser.parseInline(tokens)
      return target === null ? words : `<a href="${escapeText(target)}">${words}</a>`
    },
    code: ({ text, lang = '' }) => {
      const transitions = lang === 'mermaid' ? readTransitions(text) : null
      if (transitions) return renderTransitions(transitions, escapeText)
      const label = LANGUAGES[lang] ?? 'Text'
      return `<figure class="code"><figcaption>${label}</figcaption><pre tabindex="0" aria-label="${label}" data-copy><code>${escapeText(text)}</code></pre></figure>\n`
    },
    table(token) {
      // Each row stands on its own in a narrow window, as in `Table` of the other pages. Words beside words would be cut there.
      const stacks = token.header.length > 1
      const isShort = token.header.length > 2 && token.header.slice(1).every(({ text }) => text.length <= SHORT_NAME)
      const isWide = token.header.some(({ text }) => hasLongWord(plain(text)))
      const role = (name: string) => (stacks ? ` role="${name}"` : '')
      const names = token.header.map(({ text }) => (stacks ? ` data-column="${escapeText(plain(text))}"` : ''))
      const cells = (row: Tokens.TableCell[], tag: string) =>
        row.map(({ tokens, align }, n) => {
          // A column without a name has no heading.
          if (tag === 'th' && tokens.length === 0) return `<td${role('cell')}></td>`
          const name = tag === 'td' && n === 0 ? 'th' : tag
          const heading = tag === 'th' ? ' scope="col"' : n === 0 ? ' scope="row"' : ''
          const part = tag === 'th' ? role('columnheader') : n === 0 ? role('rowheader') : `${role('cell')}${names[n]}`
          const number = align === 'right' ? ' class="number"' : ''
          return `<${name}${heading}${number}${part}>${this.parser.parseInline(tokens)}</${name}>`
        })
      const rows = token.rows.map((row) => `<tr${role('row')}>${cells(row, 'td').join('')}</tr>`).join('')
      const head = `<thead${role('rowgroup')}><tr${role('row')}>${cells(token.header, 'th').join('')}</tr></thead>`
      const table = `<table${role('table')}>${head}<tbody${role('rowgroup')}>${rows}</tbody></table>`
      return `<div class="table${stacks ? ` stacks${isShort ? ' short' : isWide ? ' wide' : ''}` : ''}" tabindex="0" role="region" aria-label="Table ${++tables}">${table}</div>\n`
    },
  }
}

/** Names of columns of so many characters need little room beside their cells. */
const SHORT_NAME = 8

const LANGUAGES: Readonly<Record<string, string>> = {
  sh: 'Shell',
  ts: 'TypeScript',
  js: 'JavaScript',
  json: 'JSON',
  yaml: 'YAML',
  python: 'Python',
  sql: 'SQL',
  mermaid: 'Diagram, in words',
}

/** Where a link leads on this host, or its address; null for a file without a page. */
function targetOf(href: string, file: string, pages: ReadonlyMap<string, string>): string | null {
  if (/^https?:\/\//.test(href)) return href
  const [path = '', anchor] = href.split('#')
  if (path === '') return `#${anchor}`
  const page = pages.get(normalize(join(dirname(file), path)))
  return page === undefined ? null : anchor ? `${page}#${anchor}` : page
}

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
