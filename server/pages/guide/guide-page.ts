// The pages under /guide: a list of the documents, and each document with links to the others beside it.
import { html } from '../../../client/page/html.ts'
import { renderPage, SideGroup, type Site } from '../layout.ts'
import type { Document } from './documents.ts'

/** In the order in which they are read. A document that is not named comes at the end of the last group. */
const GROUPS = [
  ['Check pages and claims', ['try', 'buying', 'several-claims', 'check', 'quote-check', 'mcp', 'client', 'sdk']],
  ['Accounts', ['control-toolkit', 'alerts', 'subscriptions', 'limits']],
  ['Whether to trust it', ['assessment', 'accuracy', 'methodology', 'auditing', 'trust', 'security']],
  ['Running it', ['operations', 'configuration', 'capacity', 'performance']],
  ['Inside', ['architecture', 'pages-compared', 'changelog', 'notice']],
] as const

type Documents = ReadonlyMap<string, Document>
type Group = readonly [name: string, documents: readonly Document[]]

function groupsOf(documents: Documents): Group[] {
  const named = GROUPS.map(
    ([name, pages]): Group => [name, pages.flatMap((page) => documents.get(`/guide/${page}`) ?? [])],
  )
  const known = new Set(named.flatMap(([, list]) => list))
  const others = [...documents.values()].filter((document) => !known.has(document))
  const isDecision = ({ path }: Document) => path.startsWith('/guide/decisions/')
  const groups: Group[] = [
    ...named.map(
      ([name, list]): Group => [
        name,
        name === 'Inside' ? [...list, ...others.filter((one) => !isDecision(one))] : list,
      ],
    ),
    ['Decisions', others.filter(isDecision)],
  ]
  return groups.filter(([, list]) => list.length > 0)
}

export function guideIndex(site: Site, documents: Documents): string {
  return renderPage(site, {
    title: 'Guide',
    path: '/guide',
    description: 'How to buy and check verifications, use the tools for accounts, and run the service.',
    scripts: ['search'],
    body: html`<h1>Guide</h1>
      <p class="lead">How to buy and check verifications, use the tools for accounts, and run the service.</p>
      <div id="search" data-index="/docs/search.json"></div>
      ${groupsOf(documents).map(
        ([name, list]) =>
          html`<section key=${name}><h2>${name}</h2><dl class="contents">${list.map(
            ({ path, title, summary }) =>
              html`<div key=${path}><dt><a href=${path}>${title}</a></dt><dd>${firstSentence(summary)}</dd></div>`,
          )}</dl></section>`,
      )}`,
  })
}

function firstSentence(text: string): string {
  return /^.{20,}?[.:](?= |$)/.exec(text)?.[0].replace(/:$/, '.') ?? text
}

export function guidePage(site: Site, documents: Documents, document: Document): string {
  const { path, title, summary, markup } = document
  return renderPage(site, {
    title,
    path,
    description: summary,
    body: html`<p class="to-side"><a href="#side">All pages of the guide</a></p><div class="beside">
      <nav class="side" id="side" tabindex="0" aria-label="Guide">
        <p><a href="/guide">All documents</a></p>
        ${groupsOf(documents).map(
          ([name, list]) =>
            html`<${SideGroup} key=${name} name=${name} isOpen=${list.includes(document)}>${list.map(
              (one) => html`<li key=${one.path}>
              <a href=${one.path} aria-current=${one === document ? 'page' : undefined}>${one.title}</a>
              ${one === document && html`<${Headings} headings=${document.headings} />`}
            </li>`,
            )}<//>`,
        )}
      </nav>
      <div>
        <article class="document" dangerouslySetInnerHTML=${{ __html: markup }}></article>
        <${Next} documents=${documents} document=${document} />
      </div>
    </div>`,
  })
}

/** The page that follows in the order of the guide; after the last one, the reference. */
function Next({ documents, document }: { documents: Documents; document: Document }) {
  const all = groupsOf(documents).flatMap(([, list]) => list)
  const next = all[all.indexOf(document) + 1]
  return html`<nav class="next" aria-label="Next page"><p>Next: ${
    next
      ? html`<a href=${next.path}>${next.title}</a>. ${firstSentence(next.summary)}`
      : html`<a href="/docs">API reference</a>. Every operation, with its call and its answer.`
  }</p></nav>`
}

function Headings({ headings }: Pick<Document, 'headings'>) {
  if (headings.length < 2) return null
  return html`<ul class="headings">${headings.map(({ id, text }) => html`<li key=${id}><a href=${`#${id}`}>${text}</a></li>`)}</ul>`
}
