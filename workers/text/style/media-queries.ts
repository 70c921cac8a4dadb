// Evaluates media queries for a browser window of 1280 by 720 pixels on a screen, without preferences of the reader.
import {
  isMediaAnd,
  isMediaCondition,
  isMediaConditionListWithAnd,
  isMediaConditionListWithOr,
  isMediaFeature,
  isMediaFeatureBoolean,
  isMediaFeaturePlain,
  isMediaFeatureRange,
  isMediaInParens,
  isMediaNot,
  isMediaOr,
  isMediaQueryWithoutType,
  isMediaQueryWithType,
  type MediaFeatureRange,
  type MediaQuery,
  parse,
} from '@csstools/media-query-list-parser'

/** Whether rules under a condition apply. `perhaps` if that cannot be decided. */
export type Applies = 'always' | 'perhaps' | 'never'

/** The value of a list of media queries. A query that is invalid or unknown to browsers matches nothing, as in browsers. */
export function mediaApplies(list: string): Applies {
  const media = list.trim().toLowerCase()
  if (media === '') return 'always'
  if (media.length > longestList) return 'perhaps'
  let found = judged.get(media)
  if (found === undefined) {
    found = judge(media)
    if (judged.size === mostJudged) judged.clear()
    judged.set(media, found)
  }
  return found
}

/** A cache, because pages repeat a few queries. */
const judged = new Map<string, Applies>()
const mostJudged = 1000

/** Most brackets inside brackets: the parser recurses into them. Real lists have far fewer. */
const longestList = 1000

function judge(list: string): Applies {
  const queries = parse(list).map(judgeQuery)
  if (queries.includes('always')) return 'always'
  return queries.includes('perhaps') ? 'perhaps' : 'never'
}

function judgeQuery(query: MediaQuery): Applies {
  if (arithmetic.test(query.toString())) return 'perhaps'
  if (isMediaQueryWithoutType(query)) return holds(query.media) ? 'always' : 'never'
  if (!isMediaQueryWithType(query)) return 'never'
  const type = query.getMediaType()
  if (reserved.has(type)) return 'never'
  const isType = type === 'all' || type === 'screen'
  const both = isType ? (query.media ? holds(query.media) : true) : false
  return (query.getModifier() === 'not' ? not(both) : both) ? 'always' : 'never'
}

const reserved = new Set(['not', 'only', 'and', 'or', 'layer'])
const arithmetic = /\b(?:calc|min|max|clamp|env|round|mod|rem)\(/

/** `null` is the third value of the logic of media queries: unknown to browsers. */
type Truth = boolean | null

const not = (truth: Truth): Truth => (truth === null ? null : !truth)

function and(truths: Truth[]): Truth {
  if (truths.includes(false)) return false
  return truths.includes(null) ? null : true
}

function or(truths: Truth[]): Truth {
  if (truths.includes(true)) return true
  return truths.includes(null) ? null : false
}

/** Takes any part of a condition. */
function holds(part: unknown): Truth {
  if (isMediaCondition(part) || isMediaInParens(part) || isMediaAnd(part) || isMediaOr(part)) return holds(part.media)
  if (isMediaNot(part)) return not(holds(part.media))
  if (isMediaConditionListWithAnd(part)) return and([holds(part.leading), ...part.list.map(holds)])
  if (isMediaConditionListWithOr(part)) return or([holds(part.leading), ...part.list.map(holds)])
  if (!isMediaFeature(part)) return null
  const { feature } = part
  if (isMediaFeatureBoolean(feature)) return isNonzero(feature.getName())
  if (isMediaFeaturePlain(feature)) return agrees(feature.getName(), feature.value.toString().trim())
  return isMediaFeatureRange(feature) ? isInRange(feature) : null
}

function isNonzero(name: string): Truth {
  const word = words.get(name)
  if (word !== undefined) return !absent.has(word)
  const actual = numbers.get(name)
  return actual === undefined ? null : actual !== 0
}

function agrees(name: string, value: string): Truth {
  const word = words.get(name)
  if (word !== undefined) return /^[a-z-]+$/.test(value) ? value === word : null
  const standard = name.replace(/^-webkit-(m..-)(.*)/, '$1-webkit-$2')
  const bound = ['min-', 'max-'].find((prefix) => standard.startsWith(prefix))
  const plainName = bound === undefined ? standard : standard.slice(bound.length)
  const actual = numbers.get(plainName)
  const wanted = readNumber(plainName, value)
  if (actual === undefined || wanted === null) return null
  if (bound === 'min-') return actual >= wanted
  return bound === 'max-' ? actual <= wanted : Math.abs(actual - wanted) < 1e-9
}

/** `400px <= width < 1200px` and its shorter forms. */
function isInRange(range: MediaFeatureRange): Truth {
  const name = range.getName()
  const actual = numbers.get(name)
  if (actual === undefined) return null
  const truths: Truth[] = []
  let left: number | null = null
  let compare: Comparison | undefined
  for (const part of range.toString().split(/([<>]=?|=)/)) {
    const comparison = comparisons.get(part)
    if (comparison) {
      compare = comparison
      continue
    }
    const side = part.trim()
    const right = side === name ? actual : readNumber(name, side)
    if (compare) truths.push(left === null || right === null ? null : compare(left, right))
    left = right
  }
  return and(truths)
}

type Comparison = (a: number, b: number) => boolean

const comparisons = new Map<string, Comparison>([
  ['<', (a, b) => a < b],
  ['<=', (a, b) => a <= b],
  ['>', (a, b) => a > b],
  ['>=', (a, b) => a >= b],
  ['=', (a, b) => a === b],
])

/** A length in pixels, a resolution in dots per pixel, a ratio or a number; null if it is not of the feature's kind. */
function readNumber(name: string, value: string): number | null {
  const [, figure, unit = ''] = value.match(/^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)([a-z]*)$/) ?? []
  const number = Number(figure)
  if (name.endsWith('aspect-ratio')) {
    const [, across, down] = value.match(/^(\d+(?:\.\d+)?|\.\d+)\s*\/\s*(\d+(?:\.\d+)?|\.\d+)$/) ?? []
    if (across !== undefined) return Number(across) / Number(down)
  }
  if (figure === undefined) return null
  if (name === 'resolution') return inUnits(number, resolutions.get(unit))
  if (!/(?:^|-)(?:width|height)$/.test(name)) return unit === '' ? number : null
  if (unit === '') return number === 0 ? 0 : null
  return inUnits(number, lengths.get(unit))
}

const inUnits = (number: number, size: number | undefined) => (size === undefined ? null : number * size)

const width = 1280
const height = 720

const numbers = new Map<string, number>([
  ['width', width],
  ['height', height],
  ['device-width', width],
  ['device-height', height],
  ['aspect-ratio', width / height],
  ['device-aspect-ratio', width / height],
  ['resolution', 1],
  ['-webkit-device-pixel-ratio', 1],
  ['-webkit-transform-3d', 1],
  ['color', 8],
  ['color-index', 0],
  ['monochrome', 0],
  ['grid', 0],
  ['horizontal-viewport-segments', 1],
  ['vertical-viewport-segments', 1],
])

const words = new Map<string, string>([
  ['orientation', 'landscape'],
  ['hover', 'hover'],
  ['any-hover', 'hover'],
  ['pointer', 'fine'],
  ['any-pointer', 'fine'],
  ['update', 'fast'],
  ['overflow-block', 'scroll'],
  ['overflow-inline', 'scroll'],
  ['color-gamut', 'srgb'],
  ['dynamic-range', 'standard'],
  ['device-posture', 'continuous'],
  ['display-mode', 'browser'],
  ['scripting', 'enabled'],
  ['prefers-color-scheme', 'light'],
  ['prefers-contrast', 'no-preference'],
  ['prefers-reduced-motion', 'no-preference'],
  ['prefers-reduced-transparency', 'no-preference'],
  ['prefers-reduced-data', 'no-preference'],
  ['forced-colors', 'none'],
  ['inverted-colors', 'none'],
])

/** The values that make a feature without a value false. */
const absent = new Set(['none', 'no-preference'])

// Maps, because an object also has a member `constructor`.
const lengths = new Map([
  ['px', 1],
  ['em', 16],
  ['rem', 16],
  ['ex', 8],
  ['ch', 8],
  ['in', 96],
  ['cm', 96 / 2.54],
  ['mm', 96 / 25.4],
  ['q', 96 / 101.6],
  ['pt', 96 / 72],
  ['pc', 16],
  ['vw', width / 100],
  ['vh', height / 100],
  ['vmin', height / 100],
  ['vmax', width / 100],
])
const resolutions = new Map([
  ['dppx', 1],
  ['x', 1],
  ['dpi', 1 / 96],
  ['dpcm', 2.54 / 96],
])
