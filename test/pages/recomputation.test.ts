// The button of /verify that makes a local verdict again, in a real browser: the same verdict to the bit, each difference in words, and
// nothing but the verifier's own files over the network.
import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import t from 'tap'
import { VERDICT_WORDS } from '../../client/verdict-words.ts'
import type { CompletedResult } from '../../server/interface/result.ts'
import { settings } from '../../workers/assessment/local/weights.ts'
import { noBrowser, overflow, picture, seriousFindings, sharedBrowser, shown, visit } from '../browser.ts'
import { issueResult, KEY_ID, pubkeyHex } from '../client/issuer.ts'
import { payingFetch, startSystem } from '../system.ts'
import { until } from '../until.ts'
import { readVerdictVectors } from '../vectors/verdict.ts'
import { give } from './verify-form.ts'

const PAGES = {
  '/bridge': `<h1>The Arvel Bridge</h1><p>The Arvel Bridge was opened on 3 May 1911 after six years of work.</p>
    <p>It is 412 metres long and carries two lanes of road traffic.</p><p>It rests on seven stone piers.</p>`,
}
/** A browser on a busy machine needs its time for 126 MB and a model. */
const PATIENCE = { timeout: 120_000 }

const system = await startSystem({ pages: PAGES, env: { ASSESSMENT: 'local', VERIFIER_THREADS: '1' } })
t.teardown(() => system[Symbol.asyncDispose]())

t.test('the policy of /verify, and of no other page, lets WebAssembly run', async (t) => {
  const policyOf = async (path: string) => (await fetch(system.url(path))).headers.get('content-security-policy') ?? ''
  const policy = await policyOf('/verify')
  for (const part of ["script-src 'self' 'wasm-unsafe-eval'", "worker-src 'self'", 'trusted-types recompute'])
    t.ok(policy.split('; ').includes(part), part)
  t.notMatch(policy, /'unsafe-/)
  for (const path of ['/verify.html', '/pricing', '/account', '/guide', '/chain'])
    t.notMatch(await policyOf(path), /wasm|worker-src|recompute/, path)
  const [, served = ''] = /data-verifier="([^"]*)"/.exec(await (await fetch(system.url('/verify'))).text()) ?? []
  const { worker, runtime } = JSON.parse(served.replaceAll('&quot;', '"'))
  const script = await fetch(system.url(worker))
  t.equal(
    script.headers.get('content-security-policy'),
    "default-src 'none'; script-src 'wasm-unsafe-eval'; connect-src 'self'",
  )
  const head = await fetch(system.url(runtime.path), { method: 'HEAD' })
  t.equal(head.headers.get('content-type'), 'application/wasm')
  t.equal(Number(head.headers.get('content-length')), runtime.bytes)
  t.equal((await fetch(system.url('/assets/verifier-other.js'))).status, 404)
})

async function check(page: Page, result: unknown) {
  await page.evaluate(() => document.getElementById('standing')?.setAttribute('id', 'before'))
  await give(page, JSON.stringify(result))
  await page.waitForSelector('#standing')
}

async function recompute(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Recompute the verdict' }).click()
  await page.waitForSelector('.recomputed', PATIENCE)
  return shown(page, '.recomputation')
}

/** What the page gives its worker, and what the worker says at last. */
interface Run {
  task: unknown
  news: unknown
}

/** Runs in the page. */
function keepRun() {
  const kept = globalThis as typeof globalThis & { run?: Run }
  kept.Worker = class extends Worker {
    override postMessage(task: unknown) {
      this.addEventListener('message', ({ data }) => {
        kept.run = { task, news: data }
      })
      super.postMessage(task)
    }
  }
}

const keptRun = (page: Page) => page.evaluate(() => (globalThis as typeof globalThis & { run?: Run }).run)

/** To make a verdict takes five seconds of the processor: until `unroute`, the worker says of the same task what it said before. */
const replay = (page: Page, run: Run | undefined) =>
  page.route('**/assets/verifier-worker-*.js', (route) =>
    route.fulfill({
      contentType: 'text/javascript',
      body: `const { task, news } = ${JSON.stringify(run)}
        const isSame = (given) => JSON.stringify(given) === JSON.stringify(task)
        addEventListener('message', ({ data }) => postMessage(isSame(data) ? news : { problem: 'another task' }))`,
    }),
  )

t.test('in a browser', { skip: noBrowser }, async (t) => {
  await until(async () => ((await fetch(system.url('/readyz'))).status === 200 ? true : undefined))
  const body = { source_url: system.site.url('/bridge'), claim: 'The Arvel Bridge was opened in 1911.' }
  const order = { key: randomUUID(), body, fetch: payingFetch(), headers: { prefer: 'wait=25' } }
  let answer = await system.ask(order)
  while (answer.status === 202) answer = await system.ask(order)
  t.equal(answer.status, 200)
  const result = (await answer.json()) as CompletedResult
  const { host } = new URL(system.service.address)
  await using opened = await visit(await sharedBrowser(), system.url('/verify'))
  const { page, requests, complaints } = opened

  /** How many requests there were before the verifier was fetched to its end. */
  let before = 0
  let run: Run | undefined

  await t.test('it says how far it is, and a press ends it and leaves the page as it was', async (t) => {
    const held = Promise.withResolvers<void>()
    // After the program and the vocabulary, before the weights.
    await page.context().route('**/model/*.onnx', async (route) => {
      await held.promise
      await route.continue().catch(() => {})
    })
    await check(page, result)
    const offer = await shown(page, '.recomputation')
    t.match(offer, new RegExp(`fetches 126 MB from ${host}`))
    t.match(offer, /111 MB[\s\S]*14\.2 MB/)
    t.notOk(
      requests.some((line) => /model|verifier-/.test(line)),
      'nothing is fetched before the button is pressed',
    )
    t.same(await seriousFindings(page), [])
    await picture(page, 'recomputation-offered-1440-light')
    const outcome = await shown(page, '.outcome')
    await page.getByRole('button', { name: 'Recompute the verdict' }).click()
    // It is told at each hundredth, so the last news may be of a little less than there is.
    await page.locator('.advance', { hasText: /^\s*1[345]\.\d MB of 126 MB/ }).waitFor(PATIENCE)
    const { value, max } = await page.locator('.advance progress').evaluate((one) => {
      const { value, max } = one as HTMLProgressElement
      return { value, max }
    })
    t.ok(value > 13e6 && value < 16e6 && max > 125e6, `${value} of ${max} bytes`)
    t.equal(
      await shown(page, '.recomputation [role=status]'),
      'Fetching the verifier …',
      'a reader hears each step once',
    )
    t.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel', 'the keyboard is where it was')
    t.same(await seriousFindings(page), [])
    t.equal(page.workers().length, 1)
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => document.activeElement?.textContent === 'Recompute the verdict')
    t.equal(await shown(page, '.outcome'), outcome, 'the page is as it was')
    await until(async () => (page.workers().length === 0 ? true : undefined))
    held.resolve()
    await page.context().unroute('**/model/*.onnx')
    before = requests.length
  })

  await t.test('a bought verdict is made again: the same, and nothing but the verifier is fetched', async (t) => {
    await page.evaluate(keepRun)
    const said = page.evaluate(
      () =>
        new Promise<string[]>((resolve) => {
          const lines: string[] = []
          const place = document.querySelector('.recomputation')
          const watch = new MutationObserver(() => {
            lines.push(place?.querySelector('.advance')?.textContent?.trim() ?? '')
            if (!place?.querySelector('.recomputed')) return
            watch.disconnect()
            resolve(lines)
          })
          if (place) watch.observe(place, { subtree: true, childList: true, characterData: true })
        }),
    )
    t.match(
      await recompute(page),
      /The same\. Made again here, verdict, explanation and quotes are the\s+ones in the file\./,
      'and it can be begun again',
    )
    const lines = await said
    for (const part of [/^126 MB of 126 MB$/, /^0 of \d passages read$/, /^(\d) of \1 passages read$/])
      t.ok(
        lines.some((line) => part.test(line)),
        `${part} in ${[...new Set(lines)].join()}`,
      )
    t.equal(await page.getByRole('button', { name: 'Cancel' }).count(), 0)
    t.same(
      requests.filter((line) => !line.startsWith(`GET http://${host}/`)),
      [],
      'no other host, and nothing is sent',
    )
    t.same(complaints, [])
    await page.getByText('What the verifier read').click()
    t.same(await seriousFindings(page), [])
    await picture(page, 'recomputation-same-1440-light')
    run = await keptRun(page)
    t.match(run, { news: { assessments: [{ claim_support: 'supports' }] } })
  })

  await t.test('a changed verdict: the file is told to be changed first, then what differs', async (t) => {
    await replay(page, run)
    await check(page, { ...result, claim_support: 'contradicts' })
    const whole = await shown(page, '.outcome')
    t.ok(whole.indexOf('Not genuine') < whole.indexOf(VERDICT_WORDS.contradicts), 'before any verdict')
    t.match(
      await shown(page, '.recomputation'),
      /The file is not genuine\. The verdict is made for what the file holds now/,
    )
    const button = page.getByRole('button', { name: 'Recompute the verdict' })
    t.equal(await button.getAttribute('class'), 'quiet', 'it is not what a changed file is for')
    const said = await recompute(page)
    t.match(said, /Not the same\./)
    t.match(said, /claim_support: the file says contradicts, recomputed it is supports/)
    t.same(await seriousFindings(page), [])
    await page.setViewportSize({ width: 360, height: 740 })
    await page.emulateMedia({ colorScheme: 'dark' })
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'recomputation-differs-360-dark')
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.unroute('**/assets/verifier-worker-*.js')
  })

  await t.test('a signed verdict that differs: the head says so, what it means, and what to do', async (t) => {
    const { receipt: _, ...bought } = result
    const evidence = bought.evidence.map((item) => ({ ...item, stance: 'contradicts' }))
    const wrong = issueResult({
      result: (draft) => Object.assign(draft, bought, { claim_support: 'contradicts', evidence }),
    })
    await using opened = await visit(await sharedBrowser(), system.url('/verify'))
    const { page, complaints } = opened
    await replay(page, run)
    await page.click('.pins > summary')
    await page.fill('#pins', `${KEY_ID}:${pubkeyHex}`)
    await page.locator('#pins').blur()
    await check(page, wrong)
    t.match(await shown(page, '.outcome-line'), /^Genuine: all \d+ checks passed\./)
    const colourOf = (selector: string) => page.locator(selector).evaluate((one) => getComputedStyle(one).color)
    t.not(await colourOf('#verdict'), await colourOf('.claimed'), 'before, the verdict has its colour')
    t.match(await recompute(page), /Not the same\./)
    const report = (await shown(page, '.report')).replaceAll(/\s+/g, ' ')
    t.match(report, /^The verdict made again differs from the signed one The signature is real: .*says otherwise/)
    t.match(
      report,
      /Do not rely on the verdict.* Keep the file as it is.* --recompute.* send the file to the operator of/,
    )
    t.match(await shown(page, '.outcome-line'), /^The signature holds: all \d+ checks passed\. .* not the same\./)
    t.equal(await page.evaluate(() => document.activeElement?.tagName), 'H2', 'the head is read next')
    t.equal(await colourOf('#verdict'), await colourOf('.claimed'), 'the verdict has no colour')
    t.equal(
      await page.getByRole('link', { name: 'How a verdict is recomputed' }).getAttribute('href'),
      system.url('/guide/auditing#recompute-a-verdict'),
    )
    t.same(await seriousFindings(page), [])
    await page.setViewportSize({ width: 360, height: 740 })
    t.equal(await overflow(page), 0)
    t.same(complaints, [])
  })

  await t.test('the logits are those of the published vectors, to the bit', async (t) => {
    const [vector] = readVerdictVectors().cases
    if (!vector) throw new Error('no vectors')
    const { text, claim, assessment, windows } = vector
    const { quotes, ...said } = assessment
    const source = { ...result.source, normalized_text: text }
    const evidence = quotes.map((quote) => ({ ...result.evidence[0], ...quote }))
    await check(page, { ...result, ...said, claim, source, evidence })
    t.match(await recompute(page), /The same\..*\s.*That does not make the file genuine/)
    await page.getByText('What the verifier read').click()
    const rows = await page
      .locator('.recomputation tbody tr')
      .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? '')))
    t.same(
      rows.map(([passage, ...logits]) => ({
        passage,
        logits_f32_hex: Buffer.from(Float32Array.from(logits.map(Number)).buffer).toString('hex'),
      })),
      windows,
    )
    t.same(complaints, [])
  })

  await t.test('files with another digest are not used, and the page says so', async (t) => {
    await using opened = await visit(await sharedBrowser(), system.url('/verify'), { colorScheme: 'dark' })
    const { page } = opened
    // Of the same length, and still JSON.
    await page.context().route('**/model/*.json', async (route) => {
      const text = await (await route.fetch()).text()
      await route.fulfill({ body: text.replace('"lean"', '"Lean"'), contentType: 'application/json' })
    })
    await check(page, result)
    await page.getByRole('button', { name: 'Recompute the verdict' }).click()
    await page.waitForSelector('.recomputation .notice', PATIENCE)
    const said = (await shown(page, '.recomputation')).replaceAll(/\s+/g, ' ')
    t.match(said, /It could not be recomputed\. \/model\/\w+\.json is not what the service says it is/)
    t.match(said, /That says nothing about the verdict.*Try again.*countersign verify result\.json .* --recompute/)
    t.equal(
      await page.locator('.recomputation :is(.problem, .tone-bad)').count(),
      0,
      'it looks like no fault of the result',
    )
    t.match(await shown(page, '.outcome-line'), /could not be made again here/)
    t.equal(await page.locator('.recomputed').count(), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'recomputation-refused-1440-dark')
  })

  await t.test('the weights are fetched once, and not for other weights', async (t) => {
    const fetched = requests.slice(before).filter((line) => line.includes(`${settings.weights_sha256}.onnx`))
    t.equal(fetched.length, 1, 'the browser keeps them')
    const other = result.methodology_version.replace('+ed47a71c255aed0a', '+0000000000000000')
    await check(page, { ...result, methodology_version: other })
    t.match(await shown(page, '.recomputation'), /Other weights gave this verdict: it names local-1\+0{16}/)
    t.equal(await page.getByRole('button', { name: 'Recompute the verdict' }).count(), 0)
  })

  await t.test('the single file has no service to fetch from, and says where it can be done', async (t) => {
    await using opened = await visit(await sharedBrowser(), system.url('/verify.html'))
    await check(opened.page, result)
    t.match(await shown(opened.page, '.recomputation'), /This file cannot do it\. The page \/verify of a service can/)
    t.equal(await opened.page.getByRole('button', { name: 'Recompute the verdict' }).count(), 0)
    t.same(opened.complaints, [])
  })
})
