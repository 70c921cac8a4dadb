// A sample: a text that comes with the service, so that a claim about it can be tried. The links of its quotes lead here.
import { html } from '../../client/page/html.ts'
import { type Sample, samplePath } from '../looks/samples.ts'
import { renderPage, type Site } from './layout.ts'

export function samplePage(site: Site, sample: Sample): string {
  return renderPage(site, {
    title: sample.title,
    path: samplePath(sample),
    description: `An invented text that comes with the service: ${sample.paragraphs[0]}`,
    unlisted: true,
    body: html`<article class="sample">
      <h1>${sample.title}</h1>
      ${sample.paragraphs.map((paragraph) => html`<p key=${paragraph}>${paragraph}</p>`)}
      <p class="aside">This text is invented. It comes with the service, so that there is always a page to try a claim on. <a href="/try">Try it</a></p>
    </article>`,
  })
}
