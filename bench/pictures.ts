// Pictures of every page and of every state of a page, for people to look at before a release. Each state is in four variants, and the
// variants of one colour scheme are side by side on sheets.
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { openEmbeddedPostgres } from '../server/embedded/postgres.ts'
import { noBrowser, sharedBrowser } from '../test/browser.ts'
import { endings } from '../test/endings.ts'
import type { State } from './pictures/acts.ts'
import {
  arrange,
  openTable,
  type Picture,
  PRINT,
  photograph,
  type Scene,
  VARIANTS,
  writeTree,
} from './pictures/camera.ts'
import { findPages, STATES } from './pictures/states.ts'
import { openWorld, type World } from './pictures/world.ts'

/**
 * Returns whether every picture shows what its name says.
 * @param only takes the states alone whose names contain it
 */
export async function takePictures(folder: string, only = ''): Promise<boolean> {
  if (noBrowser) throw new Error(noBrowser)
  await mkdir(folder, { recursive: true })
  await using opened = new AsyncDisposableStack()
  opened.use(endings)
  process.env.TEST_DATABASE_URL ??= await openDatabase(opened)
  const world = openWorld(opened)
  const states = Object.entries({ ...(await findPages(world)), ...STATES }).filter(([name]) => name.includes(only))
  const table = await openTable(await sharedBrowser(), folder)
  const all: Taken = { sheets: 0, findings: [], sizes: [] }
  const begun = performance.now()
  for (const [n, [name, state]] of states.entries()) {
    const { sheets, findings, sizes } = await take(table, world, { name, state, folder })
    all.sheets += sheets
    all.findings.push(...findings)
    all.sizes.push(...sizes)
    const seconds = Math.round((performance.now() - begun) / 1000)
    console.log([`${seconds} s  ${n + 1} of ${states.length}  ${name}`, ...findings].join('\n  '))
    await writeFile(join(folder, 'report.txt'), `${[...all.findings.sort(), '', ...all.sizes].join('\n')}\n`)
  }
  console.log(`${states.length} states on ${all.sheets} sheets. Findings are in ${join(folder, 'report.txt')}.`)
  return !all.findings.some((line) => line.startsWith('WRONG'))
}

async function openDatabase(opened: AsyncDisposableStack): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'countersign-pictures-'))
  opened.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Under root, Postgres runs as another user, who must get into the folder.
  await chmod(dataDir, 0o711)
  return opened.use(await openEmbeddedPostgres({ dataDir, durable: false, log: console.error })).adminUrl
}

interface Taken {
  sheets: number
  /** What a person should look at. */
  findings: string[]
  /** A line for each picture. */
  sizes: string[]
}

/** Takes all pictures of one state. What goes wrong is a finding, and the next state is taken. */
async function take(
  table: Page,
  world: World,
  { name, state, folder }: { name: string; state: State; folder: string },
): Promise<Taken> {
  const browser = await sharedBrowser()
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const own = await context.newPage()
  const watched = watch(own)
  const taken: Taken = { sheets: 0, findings: [], sizes: [] }
  let scene: Scene = { page: own }
  try {
    const [, open, { isPrint, status = 200 } = {}] = state
    const other = await open(own, world)
    if (isScene(other)) scene = other
    taken.findings.push(...(await faultsOf(scene, state, watched.status())).map((fault) => `WRONG ${name}: ${fault}`))
    const pictures: Picture[] = []
    for (const variant of isPrint ? [PRINT] : VARIANTS) pictures.push(await photograph(scene, name, variant, folder))
    await writeTree(scene, name, folder)
    for (const { variant, height, overflow } of pictures) {
      const screens = height / variant.height
      const words = `${name} ${variant.name}: ${screens.toFixed(1)} screens, ${Math.max(0, overflow)} px too wide`
      taken.sizes.push(words)
      if (overflow > 0) taken.findings.push(`WIDE ${words}`)
      if (screens > LONG && variant.scheme === 'light') taken.findings.push(`LONG ${words}`)
    }
    // Chromium says of every page with an error that it could not be loaded.
    const said = [...watched.said, ...(scene.complaints ?? [])].filter((line) => !line.includes(`status of ${status}`))
    taken.findings.push(...Array.from(new Set(said), (line) => `CONSOLE ${name}: ${line}`))
    for (const scheme of ['light', 'dark']) {
      const ones = pictures.filter(({ variant }) => variant.scheme === scheme)
      taken.sheets += await arrange(table, ones, `${name}-${isPrint ? 'print' : scheme}`, folder)
    }
  } catch (error) {
    taken.findings.push(`WRONG ${name}: ${(error as Error).message.split('\n', 3).join(' ')}`)
    await own.screenshot({ path: join(folder, `${name}-failed.png`) }).catch(() => {})
  } finally {
    await scene.page.context().close()
    await context.close()
  }
  return taken
}

/** Screens after which a page is called long. */
const LONG = 12

/** What the console said, and the status of the page. */
function watch(page: Page) {
  const said: string[] = []
  let status = 0
  page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`))
  page.on('pageerror', (error) => said.push(error.message))
  page.on('response', (response) => {
    if (response.request().isNavigationRequest() && response.frame() === page.mainFrame()) status = response.status()
  })
  return { said, status: () => status }
}

const isScene = (value: unknown): value is Scene => typeof value === 'object' && value !== null && 'dress' in value

async function faultsOf({ page, frame = page }: Scene, [says, , more]: State, status: number): Promise<string[]> {
  // biome-ignore lint/performance/useDomNodeTextContent: the text as it is seen is what is meant
  const text = await frame.innerText('body')
  const wanted = more?.status ?? 200
  return [
    ...(says.test(text) ? [] : [`it does not say ${says}: ${text.replaceAll(/\s+/g, ' ').slice(0, 1000)}`]),
    ...(status === 0 || status === wanted ? [] : [`its status is ${status}, not ${wanted}`]),
  ]
}
