// Every state of every page: words that it must show, so that no picture shows another state than its name says, and how it is
// brought about.
import { pathToFileURL } from 'node:url'
import { issueResult, keys as issuerKeys } from '../../test/client/issuer.ts'
import {
  bought,
  click,
  enter,
  inOrder,
  LOG,
  look,
  PATIENCE_MS,
  pin,
  press,
  receipt,
  recompute,
  result,
  type State,
  sample,
  see,
  urlOf,
  vectors,
  verify,
  verifyPackage,
  wait,
} from './acts.ts'
import { OWNED } from './owned-states.ts'
import type { World } from './world.ts'

const changedQuote = (text: string) => text.replaceAll('in 1874 by', 'in 1875 by')
const changedVerdict = (text: string) => text.replace('"claim_support":"supports"', '"claim_support":"contradicts"')
const [genuine, lease, alert] = [vectors('result'), vectors('lease'), vectors('alert')]
const genuineText = () => JSON.stringify(genuine.cases[0].result)
const headersOf = (headers: object) => Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`)
const alertText = () => `${headersOf(alert.cases[0].headers).join('')}\n${alert.cases[0].body}`

/** Signed with another verdict than the verifier gives. */
const signedOtherwise = (text: string) => {
  const { receipt: _, ...bought } = JSON.parse(text)
  const evidence = bought.evidence.map((item: object) => ({ ...item, stance: 'contradicts' }))
  const result = (draft: object) => Object.assign(draft, bought, { claim_support: 'contradicts', evidence })
  return JSON.stringify(issueResult({ result }))
}

export const STATES: Readonly<Record<string, State>> = {
  ...OWNED,
  'front-literal': [/literal: /, see('/', 'literal')],
  'front-closed': [/switched off/, see('/', 'closed')],

  'try-while-checking': [/Reading the page/, look('/slow', 'li.now:text-is("Reading the page")')],
  'try-problems': [/Name one page[\s\S]*Say in one sentence/, see('/try', 'local', press('Check it'))],
  'try-supports': [/The page says so/, sample('harbour-bridge')],
  'try-contradicts': [/The page says otherwise/, sample('museum-hours')],
  'try-insufficient': [/does not say enough/, sample('library-release')],
  'try-mixed': [/The page says both/, look('/mixed')],
  'try-doubted': [/No verdict, because[\s\S]*What raises doubt/, look('/doubted')],
  'try-literal': [/Not judged, quotes only/, sample('museum-hours', 'literal')],
  'try-refused-address': [/Only public pages/, look('https://127.0.0.1/')],
  'try-refused-status': [/no answer[\s\S]*404/, look('/gone')],
  'try-refused-type': [/Only HTML and plain text/, look('/image')],
  'try-refused-login': [/everybody can read/, look('/wall')],
  'try-refused-challenge': [/There is no answer/, look('/robots')],
  'try-refused-empty': [/There is no answer/, look('/empty')],
  'try-refused-daily-limit': [
    /has no such limit/,
    inOrder(look('/kelby', undefined, 'limited'), look('/mixed', undefined, 'limited')),
  ],
  'try-unreachable': [
    /could not be reached/,
    inOrder(
      (page) => page.route('**/try', (it) => (it.request().method() === 'POST' ? it.abort() : it.continue())),
      look('/kelby'),
    ),
  ],
  'try-too-long-without-script': [
    /What you sent is too long/,
    see(
      '/try',
      'local',
      (page) => page.fill('#try-claim', 'x'.repeat(100_000)),
      (page) => page.locator('form.try').evaluate((form: HTMLFormElement) => form.submit()),
      wait('h1:text("too long")'),
    ),
    { status: 400 },
  ],
  'try-switched-off': [/does not offer free checks/, see('/try', 'closed'), { status: 404 }],

  'result-supports': [/The page says so/, result('supports')],
  'result-contradicts': [/The page says otherwise/, result('contradicts')],
  'result-mixed': [/The page says both/, result('mixed')],
  'result-insufficient': [/does not say enough/, result('insufficient')],
  'result-claims': [/3 claims/, result('claims')],
  'result-literal': [/Not judged, quotes only/, result('literal')],
  'result-doubted': [/No verdict, because[\s\S]*What raises doubt/, result('doubted')],
  'result-cached': [/The page says so/, result('cached')],
  'result-checks-open': [
    /checks passed/,
    inOrder(result('supports'), ...['.whole-text', '.checks', '.bytes'].map((part) => click(`${part} > summary`))),
  ],
  'result-pending': [/asks again in/, result('pending')],
  'result-gone': [/no longer kept/, result('expired')],
  'result-wrong-token': [/opens no result here/, result('supports', (link) => `${link.slice(0, -4)}AAAA`)],
  'result-without-token': [/The link has no token/, result('supports', (link) => link.replace(/#.*/, ''))],
  'result-failed-status': [/could not be done[\s\S]*source_http_status/, result('failed-status')],
  'result-failed-type': [/could not be done[\s\S]*source_unsupported_type/, result('failed-type')],
  'result-failed-login': [/could not be done[\s\S]*source_login_required/, result('failed-login')],
  'result-failed-challenge': [/could not be done[\s\S]*source_challenge/, result('failed-challenge')],
  'result-printed': [/The page says so/, result('supports'), { isPrint: true }],

  'verify-good': [/Genuine: signed by this service/, verify(bought('contradicts'))],
  'verify-pinned': [/Genuine/, verify(genuineText, { pins: genuine.pins })],
  'verify-tampered-quote': [/Not genuine/, verify(bought('supports', changedQuote))],
  'verify-tampered-verdict': [/Not genuine/, verify(bought('supports', changedVerdict))],
  'verify-unknown-key': [/unknown key/, verify(genuineText)],
  'verify-claims': [/3 claims/, verify(bought('claims'))],
  'verify-failed': [/Nothing to verify/, verify(bought('failed-status'))],
  'verify-lease': [
    /This is a lease[\s\S]*Genuine: signed by this service\s+In force until/,
    verify(async (world) => JSON.stringify(await (await world.account()).renew())),
  ],
  'verify-lease-revoked': [
    /said to be revoked[\s\S]*revoked on/,
    verify(async (world) => JSON.stringify(await (await world.account()).revoked())),
  ],
  'verify-lease-revocation': [
    /the revocation of a lease[\s\S]*Genuine/,
    verify(async (world) => JSON.stringify((await world.account()).revocation)),
  ],
  'verify-lease-lapsed': [
    /no longer in force/,
    verify(() => JSON.stringify(lease.cases[0].answer), { pins: lease.keys }),
  ],
  'verify-receipt': [/Genuine/, verify(() => '1')],
  'verify-alert': [/an alert[\s\S]*Genuine/, verify(alertText, { pins: alert.options.keys })],
  'verify-chain': [/export of the whole chain[\s\S]*Genuine/, verify(() => LOG, { pins: vectors('log').keys.keys })],
  'verify-citations-report': [/the report of a check/, verify(async (world) => (await world.check()).json)],
  'verify-evidence-package': [/an evidence package/, verifyPackage],
  'verify-garbage': [/cannot be checked/, verify(() => 'what a reader pasted by mistake')],
  'verify-unknown-serial': [
    /no receipt with the serial/,
    see('/verify', 'local', enter({ '#text': '99999999' }, 'Verify it', '.problem:not(:empty)')),
  ],
  'verify-wrong-pin': [/is not KEYID:HEX/, see('/verify', 'local', pin('1:short'))],
  'verify-recomputing': [
    /Fetching the verifier/,
    recompute('.recomputation .progress:not(:empty)', (page) => page.context().route('**/*.onnx', () => {})),
  ],
  'verify-recomputed': [/The same\./, recompute('.recomputed')],
  'verify-recomputation-differs': [
    /verdict made again differs[\s\S]*Keep the file/,
    inOrder(
      verify(bought('supports', signedOtherwise), { pins: issuerKeys }),
      press('Recompute the verdict'),
      wait('.recomputed', 4 * PATIENCE_MS),
    ),
  ],
  'verify-recomputation-failed': [
    /could not be recomputed/,
    recompute('.recomputation .notice', (page) =>
      page
        .context()
        .route('**/model/*.json', async (it) =>
          it.fulfill({ body: (await (await it.fetch()).text()).replace('lean', 'Lean') }),
        ),
    ),
  ],
  'verify-printed': [/The page says otherwise/, verify(bought('contradicts')), { isPrint: true }],
  'verify-file-empty': [/Verify it/, see('/verify.html')],
  'verify-file-unknown-key': [/unknown key/, verify(bought('supports'), { path: '/verify.html' })],
  'verify-file-tampered': [/Not genuine/, verify(bought('supports', changedQuote), { path: '/verify.html' })],

  'pricing-calculated': [/USD/, see('/pricing', 'local', click('main form button'))],
  'chain-empty': [/no receipt yet/, see('/chain', 'empty')],
  'chain-filled': [/Latest|latest/, inOrder((_, world) => world.account(), see('/chain'))],
  'receipt-of-purchase': [/verification that was bought/, receipt('source-verification')],
  'receipt-of-account': [/account kelby/, receipt('kelby')],
  'receipt-of-lease': [/lease/i, receipt('lease')],
  'receipt-of-alert': [/alert/i, receipt('watchdog')],
  'receipts-search': [/Find/, see('/receipts')],
  'receipts-several': [/2 receipts are for this digest/, see(`/receipts?q=${'0'.repeat(64)}`)],
  'receipts-not-found': [/Nothing found/, see(`/receipts?q=${'f'.repeat(64)}`)],
  'receipts-nonsense': [/neither a serial nor/, see('/receipts?q=nonsense')],

  'status-bad-days': [/days on record/, see('/status', 'literal')],
  'status-restricted': [/with a restriction/, see('/status', 'closed')],
  'status-degraded': [/Not everything works[\s\S]*record cannot be read/, see('/status', 'away')],
  'accuracy-literal': [/Accuracy/, see('/accuracy', 'literal')],
  'sample-bridge': [/Ferrow/, see('/samples/harbour-bridge')],
  'sample-museum': [/Orle/, see('/samples/museum-hours')],
  'sample-release': [/Kestrel/, see('/samples/library-release')],
  'guide-searching': [
    /lease/i,
    see('/guide', 'local', (page) => page.getByRole('searchbox').first().fill('lease'), wait('search li')),
  ],
  'guide-printed': [/Buying/i, see('/guide/buying'), { isPrint: true }],

  'error-400': [/invalid_request/, see('/v1/chain?from=nonsense'), { status: 400 }],
  'error-401': [/An API key is needed/, see('/v1/usage'), { status: 401 }],
  'error-404': [/nothing at this address/, see('/nothing'), { status: 404 }],
  'error-405': [/This address is for programs/, see('/mcp'), { status: 405 }],
  'error-413': [
    /body_too_large/,
    see('/operator', 'literal', enter({ '#token': 'x'.repeat(5000) }, 'Sign in', 'h1:text("too long")')),
    { status: 413 },
  ],
  'error-429': [
    /Too many requests/,
    see('/chain', 'limited', async (page) => {
      await page.evaluate(async () => {
        for (let status = 0; status !== 429; ) status = (await fetch('/receipts')).status
      })
      await page.goto(new URL('/receipts', page.url()).href)
    }),
    { status: 429 },
  ],
  'error-503': [/Not available at present/, see('/receipts/1', 'away'), { status: 503 }],

  'check-page': [/citations hold/, async (page, world) => page.goto(pathToFileURL((await world.check()).file).href)],
  ...Object.fromEntries(
    (['waiting', 'bought', 'receipt', 'quotes', 'report'] as const).map((name): [string, State] => [
      `chat-${name}`,
      [
        name === 'waiting' ? /No result yet/ : /checks passed|1874/,
        async (_, world) => (await world.chat()).show(name),
      ],
    ]),
  ),
}

/** The pages of the sitemap, by names like `page-guide-buying`. */
export async function findPages(world: World): Promise<Record<string, State>> {
  const text = await (await fetch(await urlOf(world, 'local', '/sitemap.xml'))).text()
  const paths = [...text.matchAll(/<loc>([^<]+)<\/loc>/g)].map(([, url = '']) => new URL(url).pathname)
  const nameOf = (path: string) => `page-${path.slice(1).replaceAll('/', '-') || 'front'}`
  return Object.fromEntries(paths.map((path) => [nameOf(path), [/\S/, see(path)]]))
}
