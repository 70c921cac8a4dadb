// The page /account: a frame for the work of the browser with an API key, and instructions for browsers without scripts.
import { html } from '../../client/page/html.ts'
import { Notice } from '../../client/page/parts.ts'
import { renderPage, type Site } from './layout.ts'

export function accountPage(site: Site): string {
  return renderPage(site, {
    title: 'Account',
    path: '/account',
    description: 'Usage, leases, watchdogs, receipts and keys of an account, for the holder of its API key.',
    scripts: ['account'],
    wide: true,
    body: html`<h1>Your account</h1>
      <noscript><${Notice} tone="open" title="This page needs JavaScript, which is off.">The API key stays in the memory of the page, so only
        a script can use it. The command line does the same: <code>countersign account usage --service ${site.baseUrl} --key FILE</code>, and
        likewise <code>lease</code>, <code>watchdog</code>, <code>citation</code>, <code>receipt</code> and <code>journal</code>.<//></noscript>
      <div id="account" data-service="/"></div>
      <p class="aside">No account yet? <code>countersign account register HANDLE --service ${site.baseUrl}</code> makes one, free of charge.</p>`,
  })
}
