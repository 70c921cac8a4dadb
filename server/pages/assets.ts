// The scripts, the style sheet, the icon and the single file of the pages, and the page for chat hosts: made from their
// sources at the first request, and cached. There is no build step, so the pages always match the sources.
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { ChatPlace, ScriptName } from '../../client/page/build.ts'

/** What one address serves. */
export interface Asset {
  /** Names the bytes, so that a browser may keep them for ever. */
  path: string
  type: string
  body: Buffer
  /** By the value of Content-Encoding. */
  encoded: Readonly<Record<'br' | 'gzip', Buffer>>
}

export interface Assets {
  style: Asset
  /** The icon of the tab, in SVG. */
  icon: Asset
  scripts: Readonly<Record<ScriptName, Asset>>
  /** `/verify.html`, and the policy that its own meta element states. */
  singleFile: Asset & { policy: string }
}

let made: Promise<Assets> | undefined

let last: Promise<unknown> = Promise.resolve()

/** The bundler makes one thing at a time. */
export function inTurn<T>(build: () => Promise<T>): Promise<T> {
  const next = last.then(build)
  last = next.catch(() => {})
  return next
}

/** The same assets for each call. A failure is thrown, and the next call tries again. */
export function openAssets(): Promise<Assets> {
  made ??= inTurn(make).catch((error) => {
    made = undefined
    throw error
  })
  return made
}

let madeChat: Promise<RenderChat> | undefined
type RenderChat = (place: ChatPlace) => string

/** Renders the page with which chat hosts show results. A failure is thrown, and the next call tries again. */
export function openChatPage(): Promise<RenderChat> {
  madeChat ??= inTurn(makeChat).catch((error) => {
    madeChat = undefined
    throw error
  })
  return madeChat
}

async function makeChat(): Promise<RenderChat> {
  const { buildChatAssets, renderChatPage } = await import('../../client/page/build.ts')
  const built = await buildChatAssets()
  return (place) => renderChatPage(built, place)
}

async function make(): Promise<Assets> {
  // A bundler, which a process that shows no page never loads.
  const { buildAssets, renderSingleFile, singleFilePolicy } = await import('../../client/page/build.ts')
  const built = await buildAssets()
  const [style, icon, singleFile, ...scripts] = await Promise.all([
    assetOf('/assets/style-*.css', 'text/css; charset=utf-8', built.style),
    assetOf('/assets/icon-*.svg', 'image/svg+xml', ICON),
    assetOf('/verify.html', 'text/html; charset=utf-8', renderSingleFile(built)),
    ...Object.entries(built.scripts).map(async ([name, text]) => {
      return [name, await assetOf(`/assets/${name}-*.js`, 'text/javascript; charset=utf-8', text)] as const
    }),
  ])
  return {
    style,
    icon,
    // The cast is safe: the bundler made every script.
    scripts: Object.fromEntries(scripts) as Assets['scripts'],
    singleFile: { ...singleFile, policy: singleFilePolicy(built) },
  }
}

/** A seal: the ring and the dot, which also precede the name in the header. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><style>
:root{color:#0a5a66}@media(prefers-color-scheme:dark){:root{color:#7fd0dc}}</style>
<circle cx="16" cy="16" r="12.5" fill="none" stroke="currentColor" stroke-width="4"/>
<circle cx="16" cy="16" r="5" fill="currentColor"/></svg>
`

/** What is served at /assets/. */
export function listAssets({ style, icon, scripts }: Assets): Asset[] {
  return [style, icon, ...Object.values(scripts)]
}

/** @param path has `*` in the place of the digest */
export async function assetOf(path: string, type: string, text: string): Promise<Asset> {
  const body = Buffer.from(text)
  const name = hash('sha256', body, 'base64url').slice(0, 16)
  const encoded = { br: await promisify(brotliCompress)(body), gzip: await promisify(gzip)(body) }
  return { path: path.replace('*', name), type, body, encoded }
}

/** The smallest form that the caller takes, by its Accept-Encoding. */
export function encode({ body, encoded }: Pick<Asset, 'body' | 'encoded'>, accepted: string | undefined) {
  const names = (accepted ?? '').split(',').map((part) => part.trim().toLowerCase())
  const encoding = (['br', 'gzip'] as const).find((name) => names.includes(name)) ?? null
  return { encoding, bytes: encoding ? encoded[encoding] : body }
}
