// How the states of pages are brought about: what is opened, given and pressed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { SELLERS } from '../../test/system.ts'
import type { Scene } from './camera.ts'
import type { Order, World } from './world.ts'
import { TRUE } from './world.ts'

/** Brings a page into its state. Returns what is looked at where it is not the page that was given. */
type Open = (page: Page, world: World) => Promise<unknown> | Promise<Scene>

interface More {
  /** Of the page; 200 where it is not given. */
  status?: number
  /** It is printed, in one variant. */
  isPrint?: true
}
/** Words that it must show, so that no picture shows another state than its name says, and how it is brought about. */
export type State = readonly [says: RegExp, open: Open, more?: More]

type Then = (page: Page, world: World) => Promise<unknown>
type Place = 'local' | 'literal' | 'empty' | 'away' | 'closed' | 'limited'

/** Milliseconds, on a machine that is busy with other work. */
export const PATIENCE_MS = 60_000
export const inOrder =
  (...all: Then[]): Then =>
  async (page, world) => {
    for (const one of all) await one(page, world)
  }
/** Until something of this selector is visible. */
export const wait =
  (selector: string, timeout = PATIENCE_MS) =>
  (page: Page) =>
    page.locator(selector).first().waitFor({ timeout })
export const click = (selector: string) => (page: Page) => page.locator(selector).first().click()
export const press = (name: string | RegExp) => (page: Page) =>
  page.getByRole('button', { name, exact: true }).first().click()
/** Fills in fields, presses the button of the name, and waits. */
export const enter = (fields: Record<string, string>, button: string, selector = 'main'): Then =>
  inOrder(
    async (page) => {
      for (const [field, text] of Object.entries(fields)) await page.fill(field, text)
    },
    press(button),
    wait(selector),
  )

export async function urlOf(world: World, place: Place, path: string): Promise<string> {
  const found = await world[place]()
  return new URL(path, 'address' in found ? found.address : found.service.address).href
}

/** A page, and what is done on it. */
export const see =
  (path: string, place: Place = 'local', ...then: Then[]): Open =>
  async (page, world) => {
    await page.goto(await urlOf(world, place, path))
    await inOrder(...then)(page, world)
  }

/** A free look at a page of the sources, or at any address. */
export const look = (
  path: string,
  until = '#answer :is(.notice, #verdict)',
  place: 'local' | 'limited' = 'local',
): Open =>
  see('/try', place, async (page, world) => {
    const url = path.startsWith('/') ? (await world[place]()).site.url(path) : path
    await enter({ '#try-source_url': url, '#try-claim': TRUE }, 'Check it', until)(page, world)
  })
export const sample = (name: string, place?: Place) =>
  see('/try', place, click(`button[value=${name}]`), wait('#answer #verdict'))

export const result =
  (order: Order, change = (link: string) => link): Open =>
  async (page, world) => {
    await page.goto(change((await world.buy(order)).link))
    await wait('#standing, #result .notice')(page)
  }

type Given = (world: World) => Promise<string> | string
export const pin = (keys: unknown): Then =>
  inOrder(
    click('.pins > summary'),
    (page) => page.fill('#pins', typeof keys === 'string' ? keys : JSON.stringify(keys)),
    (page) => page.locator('#pins').blur(),
  )
/** What is given to /verify, after the keys that a reader pins. */
export const verify = (given: Given, { pins, path = '/verify' }: { pins?: unknown; path?: string } = {}): Open =>
  see(path, 'local', async (page, world) => {
    if (pins) await pin(pins)(page, world)
    await enter({ '#text': await given(world) }, 'Verify it', '#standing')(page, world)
  })
/** The evidence package of a purchase, as a file. */
export const verifyPackage: Open = see('/verify', 'local', async (page, world) => {
  const { id, token } = await world.buy('supports')
  const address = await urlOf(world, 'local', `${SELLERS.source}/${id}/evidence`)
  const answer = await fetch(address, { headers: { authorization: `Bearer ${token}` } })
  if (!answer.ok) throw new Error(`The package was answered ${answer.status}`)
  const buffer = Buffer.from(await answer.arrayBuffer())
  await page.setInputFiles('#file', { name: 'package.wacz', mimeType: 'application/wacz', buffer })
  await wait('#standing')(page)
})
export const bought =
  (order: Order, change = (text: string) => text): Given =>
  async (world) =>
    change((await world.buy(order)).text)
export const recompute = (until: string, before: Then = async () => {}): Open =>
  inOrder(before, verify(bought('supports')), press('Recompute the verdict'), wait(until, 4 * PATIENCE_MS))

const readVectors = (name: string) => readFileSync(join(import.meta.dirname, '../../test/vectors', name), 'utf8')
export const vectors = (name: string) => JSON.parse(readVectors(`${name}.json`))
export const LOG = readVectors('log.jsonl')

/** A section of the account that has something in each, or of a new one, and what is done in it. */
export const section = (name: string, then: Then = async () => {}, newcomer?: string): Open =>
  see('/account', 'local', async (page, world) => {
    const key = newcomer ? await world.register(newcomer) : (await world.account()).apiKey
    await enter({ '#api-key': key }, 'Open the account', '.sections')(page, world)
    await page.locator('.sections').getByRole('button', { name }).click()
    await wait(`section:has(h2:text-is("${name}")):not(:has(p:text-is("Loading.")))`)(page)
    await then(page, world)
  })
export const blank = (name: string) => section(name, undefined, 'empty')
export const ask = (name: string, button: RegExp) => section(name, inOrder(press(button), wait('.asking')))
export const register = (handle: string, ...then: Then[]) =>
  see('/account', 'local', enter({ '#handle': handle }, 'Make the account', '#kept'), ...then)
export const subscribe = inOrder(press('Subscribe to dev'), wait('a:text("Pay for dev")'))
/** The checkout of a new account. */
export const checkout = (handle: string, then: Then = async () => {}): Open =>
  inOrder(
    section('Usage', subscribe, handle),
    async (page) => page.goto((await page.locator('a:text("Pay for dev")').getAttribute('href')) ?? ''),
    then,
  )

/** The page of the first receipt that was asked for by this one. */
export const receipt =
  (requestedBy: string): Open =>
  async (page, world) => {
    await world.account()
    const { sql } = await world.local()
    const [row] = await sql('select min(serial) serial from receipts where requested_by = $1', [requestedBy])
    await see(`/receipts/${row?.serial}`)(page, world)
  }

export const operator =
  (path: string | ((world: World) => Promise<string>)): Open =>
  async (page, world) => {
    await page.context().addCookies([await world.session()])
    await see(typeof path === 'string' ? path : await path(world), 'literal')(page, world)
  }
