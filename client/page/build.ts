// Makes the files that a browser loads: the scripts and the style sheet of the pages, verify.html, one file that works from
// disk, the page of `countersign check`, and the page that chat hosts draw results with. Run as a program it writes the two files of the
// package, verify.html and check.html: node page/build.ts FOLDER.
// Needs Node and esbuild; nothing else in the client does. esbuild has two forms. The native one takes some tenths of a
// second; it is an optional package. Where it was left out, as in a production image, the one in WebAssembly does the same
// in some seconds.
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, parse } from 'node:path'
import type { BuildOptions, Plugin } from 'esbuild-wasm'
import { COMMON_POLICY } from './policy.ts'
import { INTRODUCTION, NO_SCRIPT, TITLE } from './verify/page-words.ts'

/** The scripts of pages by name, each with its source in this folder. */
export const SCRIPTS = {
  verify: 'verify/verify.ts',
  copy: 'copy.ts',
  result: 'result/result.ts',
  account: 'account/account.ts',
  live: 'live.ts',
  search: 'search.ts',
  'try-call': 'try-call.ts',
  try: 'try/try.ts',
} as const
type Bundler = Pick<typeof import('esbuild-wasm'), 'build' | 'stop'>
export type ScriptName = keyof typeof SCRIPTS

export interface Assets {
  /** Minified, for all pages. */
  style: string
  /** Minified. */
  scripts: Readonly<Record<ScriptName, string>>
}

/** Takes some tenths of a second, or some seconds without the native form of esbuild. Ends its process afterwards. */
export async function buildAssets(bundler: Promise<Bundler> = loadBundler()): Promise<Assets> {
  // One call for all: each source that several scripts share is read once.
  const textOf = await bundle(['style.css', ...Object.values(SCRIPTS)], await bundler)
  return {
    style: textOf('style.css'),
    scripts: Object.fromEntries(Object.keys(SCRIPTS).map((name) => [name, textOf(`${name}.js`)])) as Assets['scripts'],
  }
}

/** The style sheet and the script of the page for chat hosts, minified. */
export interface ChatAssets {
  style: string
  script: string
}

/** Like `buildAssets`, and not at the same time: each ends the process of the bundler. */
export async function buildChatAssets(bundler: Promise<Bundler> = loadBundler()): Promise<ChatAssets> {
  const textOf = await bundle(['chat/chat.css', 'chat/chat.ts'], await bundler, { plugins: [ENGLISH_ALONE] })
  return { style: textOf('chat.css'), script: textOf('chat.js') }
}

/** The package for chat hosts brings zod with its messages in fifty languages, 260 KB. The page shows none of them. */
const ENGLISH_ALONE: Plugin = {
  name: 'english-alone',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.\/locales\/index\.js$/ }, ({ resolveDir }) => ({
      path: join(resolveDir, '../locales/en.js'),
    }))
  },
}

/**
 * The script of the worker that makes verdicts again, minified. Like `buildAssets`, and not at the same time.
 * @param verifier path of the source of the package `countersign-verifier`
 */
export async function buildVerifierWorker(
  verifier: string,
  bundler: Promise<Bundler> = loadBundler(),
): Promise<string> {
  const textOf = await bundle(['verify/verifier-worker.ts'], await bundler, {
    alias: { 'countersign-verifier': verifier },
    // A script that is no module has no address of its own; the runtime only wants to see that there is one.
    define: { 'import.meta.url': 'location.href' },
  })
  return textOf('verifier-worker.js')
}

type More = Pick<BuildOptions, 'plugins' | 'alias' | 'define'>

/** The text of each output by its name, without the folders of its source, which is in this folder. */
async function bundle(files: readonly string[], { build, stop }: Bundler, more: More = {}) {
  try {
    const { outputFiles } = await build({
      entryPoints: files.map((file) => ({ in: join(import.meta.dirname, file), out: parse(file).name })),
      outdir: OUT,
      bundle: true,
      minify: true,
      write: false,
      format: 'iife',
      target: ['es2022'],
      legalComments: 'none',
      logLevel: 'silent',
      ...more,
    })
    return (file: string) => outputFiles.find(({ path }) => path === join(OUT, file))?.text ?? ''
  } finally {
    await stop()
  }
}

/** The package is there but its program is not when optional packages were left out: then already its first use fails. */
export async function loadBundler(): Promise<Bundler> {
  try {
    const bundler = await import('esbuild')
    await bundler.transform('')
    return bundler
  } catch {
    return import('esbuild-wasm')
  }
}

/** Only names the results: nothing is written. */
const OUT = join(import.meta.dirname, 'out')

/** The page in one file. It works from disk. */
export function renderSingleFile({ style, scripts }: Assets): string {
  return renderFrame({
    title: `${TITLE} · Countersign`,
    style,
    script: scripts.verify,
    body: `<header><nav aria-label="Main"><a class="brand" href="#main">Countersign</a></nav></header>
<main id="main">
<h1>${TITLE}</h1>
<p class="lead">${INTRODUCTION}</p>
<noscript><p>${NO_SCRIPT}</p></noscript>
<div id="verifier"></div>
</main>`,
  })
}

/** The page that `countersign check --html` fills: the outcome goes into its empty attribute `data-check`. */
export async function buildCheckPage(bundler: Promise<Bundler> = loadBundler()): Promise<string> {
  const textOf = await bundle(['style.css', 'citations/check-page.ts'], await bundler)
  return renderFrame({
    title: 'Check of a report · Countersign',
    style: textOf('style.css'),
    script: textOf('check-page.js'),
    body: `<main id="main">
<h1>Check of a report</h1>
<noscript><p>The outcome is in this file, but JavaScript, which shows it, is off. The command also writes it as text.</p></noscript>
<div id="check" data-check=""></div>
</main>`,
  })
}

/** For a server that sends the single file: the same policy as a header. */
export function singleFilePolicy({ style, scripts }: Assets): string {
  return policyOf({ style, script: scripts.verify })
}

export interface ChatPlace {
  /** Address of the service, which the report names and links. */
  service: string
  /** The body of `GET /v1/keys`, or its list. */
  keys: unknown
}

/** The page that a chat host shows in a frame. Its own policy holds there in addition to the host's. */
export function renderChatPage(assets: ChatAssets, { service, keys }: ChatPlace): string {
  return renderFrame({
    ...assets,
    title: 'Countersign',
    body: `<main>
<h1 class="unseen">Countersign</h1>
<div id="chat" data-service="${escaped(service)}" data-keys="${escaped(JSON.stringify(keys))}"></div>
</main>`,
  })
}

interface Frame {
  title: string
  style: string
  script: string
  /** HTML. */
  body: string
}

/** A page that needs no other file. Its policy names its own script and style by their hashes and forbids every request. */
function renderFrame({ title, style, script, body }: Frame): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policyOf({ style, script })}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${style}</style>
<body>
${body}
<script>${script}</script>
</body>
</html>
`
}

/** Nothing but this script and this style sheet, and no request. */
function policyOf({ style, script }: Pick<Frame, 'style' | 'script'>): string {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  return `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ${COMMON_POLICY}`
}

/** For the value of an attribute between double quotes. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (folder === undefined) throw new Error('Name the folder to write to, for example dist.')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'verify.html'), renderSingleFile(await buildAssets()))
  await writeFile(join(folder, 'check.html'), await buildCheckPage())
}
