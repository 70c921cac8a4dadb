// Makes what a browser loads: the script and the style sheet of the pages, and verify.html, one file that works from disk.
// Run as a program it writes verify.html: node page/build.ts FILE. Needs Node and esbuild; nothing else in the client does.
// esbuild is the one in WebAssembly, because a production install leaves out optional packages, such as its native form.
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, stop } from 'esbuild-wasm'
import { INTRODUCTION, NO_SCRIPT, TITLE } from './page-words.ts'
import { COMMON_POLICY } from './policy.ts'

export interface Assets {
  /** Minified, for all pages. */
  style: string
  /** Minified, of /verify. */
  script: string
}

/** Takes some tenths of a second. Ends the process of esbuild afterwards. */
export async function buildAssets(): Promise<Assets> {
  try {
    const [style, script] = await Promise.all([buildStyle(), buildScript()])
    return { style, script }
  } finally {
    await stop()
  }
}

async function buildScript(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'verify.ts')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['es2022'],
    legalComments: 'none',
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}

async function buildStyle(): Promise<string> {
  const base = await readFile(fileURLToPath(import.meta.resolve('simpledotcss/simple.min.css')), 'utf8')
  const own = await readFile(join(import.meta.dirname, 'style.css'), 'utf8')
  const { outputFiles } = await build({
    stdin: { contents: `${base}\n${own}`, loader: 'css' },
    minify: true,
    write: false,
    legalComments: 'none',
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}

/** The page in one file. Its policy names its own script and style by their hashes and forbids every request. */
export function renderSingleFile({ style, script }: Assets): string {
  const policy = singleFilePolicy({ style, script })
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
<script>${script}</script>
</body>
</html>
`
}

export function singleFilePolicy({ style, script }: Assets): string {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  return `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ${COMMON_POLICY}`
}

if (import.meta.main) {
  const [file] = process.argv.slice(2)
  if (file === undefined) throw new Error('Name the file to write, for example dist/verify.html.')
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, renderSingleFile(await buildAssets()))
}
