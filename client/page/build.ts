// Makes what a browser loads: the scripts and the style sheet of the pages, and verify.html, one file that works from disk.
// Run as a program it writes verify.html: node page/build.ts FILE. Needs Node and esbuild; nothing else in the client does.
// esbuild is the one in WebAssembly, because a production install leaves out optional packages, such as its native form.
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type BuildOptions, build, stop } from 'esbuild-wasm'
import { INTRODUCTION, NO_SCRIPT, TITLE } from './page-words.ts'
import { COMMON_POLICY } from './policy.ts'

/** The scripts of pages, each with its source in this folder: NAME.ts. */
export const SCRIPTS = ['verify', 'copy', 'result'] as const
export type ScriptName = (typeof SCRIPTS)[number]

export interface Assets {
  /** Minified, for all pages. */
  style: string
  /** Minified. */
  scripts: Readonly<Record<ScriptName, string>>
}

/** Takes some tenths of a second. Ends the process of esbuild afterwards. */
export async function buildAssets(): Promise<Assets> {
  try {
    const [style, ...scripts] = await Promise.all([
      bundle('style.css'),
      ...SCRIPTS.map((name) => bundle(`${name}.ts`, { format: 'iife', target: ['es2022'] })),
    ])
    const named = SCRIPTS.map((name, index) => [name, scripts[index]])
    return { style, scripts: Object.fromEntries(named) }
  } finally {
    await stop()
  }
}

async function bundle(file: string, options: BuildOptions = {}): Promise<string> {
  const { outputFiles } = await build({
    ...options,
    entryPoints: [join(import.meta.dirname, file)],
    bundle: true,
    minify: true,
    write: false,
    legalComments: 'none',
    logLevel: 'silent',
  })
  return outputFiles?.[0]?.text ?? ''
}

/** The page in one file. Its policy names its own script and style by their hashes and forbids every request. */
export function renderSingleFile(assets: Assets): string {
  const { style, scripts } = assets
  const policy = singleFilePolicy(assets)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${TITLE} · Countersign</title>
<style>${style}</style>
<body>
<header><nav aria-label="Main"><a class="brand" href="#main">Countersign</a></nav></header>
<main id="main">
<h1>${TITLE}</h1>
<p class="lead">${INTRODUCTION}</p>
<noscript><p>${NO_SCRIPT}</p></noscript>
<div id="verifier"></div>
</main>
<script>${scripts.verify}</script>
</body>
</html>
`
}

export function singleFilePolicy({ style, scripts }: Assets): string {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  return `default-src 'none'; script-src ${hash(scripts.verify)}; style-src ${hash(style)}; ${COMMON_POLICY}`
}

if (import.meta.main) {
  const [file] = process.argv.slice(2)
  if (file === undefined) throw new Error('Name the file to write, for example dist/verify.html.')
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, renderSingleFile(await buildAssets()))
}
