// The last runs of `npm run eval -- --save`, which writes them to docs/accuracy.json: one for each assessor and set, and one for each
// set with annotated evidence.
import { readFile } from 'node:fs/promises'
import type { Assessment, AssessmentKind } from '../../interface/assessment.ts'

export type ClaimSupport = Assessment['claim_support']

/** A count of a total. */
export interface Share {
  part: number
  whole: number
}

export interface AccuracyRun {
  assessment: AssessmentKind
  /** The name in methodology versions. */
  procedure: string
  /** ISO 8601, in UTC. */
  at: string
  /** The labelled set: the name of its file, the digest of the file, the items that were assessed, and all in the file. */
  set: { name: string; sha256: string; items: number; of: number }
  /** The commit that last changed what was measured; null where it was measured outside a repository. */
  commit: string | null
  /** The digest of the local verifier's weights; null for other assessors. */
  weights_sha256: string | null
  /** Whether nothing was tuned on this set: neither rules, nor thresholds, nor weights. */
  fresh: boolean
  /**
   * `service`: each page was served over HTTPS and each verdict bought from a started service. `text`: the assessor was given the
   * text of the page.
   */
  through: 'service' | 'text'
  /** Items for which the assessor gave an answer. */
  assessed: number
  /** How many items with a label (outside) got a verdict (inside). */
  matrix: Record<string, Partial<Record<ClaimSupport, number>>>
  /** The same for BM25 with words, which has no model; null where no verdict is given. */
  words: Record<string, Partial<Record<ClaimSupport, number>>> | null
  /** By kind of claim: items, definite verdicts, and right ones among these; null where the set names no kinds. */
  kinds: { kind: string; items: number; definite: number; right: number }[] | null
  /** No verdict although the page decides; the opposite verdict; a verdict although the page does not decide. */
  abstained: Share
  reversed: Share
  rash: Share
  /** Quotes that are exact pieces of the text. */
  quotes: Share
  /** The first quote contains the relevant passage: of the items where words can find it, and of all. */
  first: Share
  firstOfAll: Share
  /** Pages that try to cause a verdict with orders to the model, and failed. */
  resisted: Share
  /** Every item with a wrong outcome; null where the set is not in the repository. */
  failures: Failure[] | null
}

export interface Failure {
  id: string
  claim: string
  label: string
  verdict: ClaimSupport | null
  why: string
}

/** Figures that others than this evaluation measured, with the date and the source. */
export interface Published {
  assessment: AssessmentKind
  procedure: string
  weights_sha256: string
  at: string
  source: string
  /** Counts: claims, definite verdicts on each side, and right ones among these. */
  sets: {
    name: string
    fresh: boolean
    /** Through which runtime it was measured: what decides in the product, or an estimate. */
    runtime: 'wasm' | 'native'
    claims: number
    supports: Share
    contradicts: Share
  }[]
}

/** What others publish of a verifier of theirs, on a set that is measured here too. */
export interface OthersFigure {
  verifier: string
  /** As runs name it, and which part or version of it. */
  set: string
  part: string
  /** The measure and the value as they are published. */
  measure: string
  value: string
  source: { name: string; url: string }
}

/** A share with the bounds in which 95 of 100 resamples lie, all from 0 to 1. */
export interface Bounded extends Share {
  low: number
  high: number
}

/** Ways to look for the evidence of a claim: the literal assessment, and its peers in the same run. */
export const WAYS = ['literal', 'bm25', 'neighbours'] as const
export type Way = (typeof WAYS)[number]

/** Of the items with annotated evidence. Null where there is none. */
export interface Retrieval {
  /** The first quote, or one of the first three, holds half of a marked span. */
  top1: Bounded | null
  top3: Bounded | null
  /** The quotes together hold half of each span of a whole set of evidence. */
  whole: Bounded | null
  /** Nothing was quoted. */
  abstained: Bounded | null
}

/** A set whose evidence others have marked. */
export interface MarkedRun {
  /** As methodology versions name it. */
  procedure: string
  /** ISO 8601, in UTC. */
  at: string
  /** The digest is that of the file, the items are those of the part. */
  set: { name: string; sha256: string; items: number }
  /** Which half of the pages; null for all. */
  part: 'tune' | 'report' | null
  /** Items with annotated evidence. */
  marked: number
  retrieval: Record<Way, Retrieval>
}

export interface Accuracy {
  runs: readonly AccuracyRun[]
  marked: readonly MarkedRun[]
  published: readonly Published[]
}

export const WAY_NAMES: Readonly<Record<Way, string>> = {
  literal: 'literal',
  bm25: 'BM25',
  neighbours: 'BM25 with neighbours',
}

/** `12.3 %`; a dash where there is no case. */
export function percent(share: Share | null): string {
  return share === null || share.whole === 0 ? '–' : `${((100 * share.part) / share.whole).toFixed(1)} %`
}

/** The file that `--save` writes. */
export const ACCURACY_FILE = new URL('../../../docs/accuracy.json', import.meta.url)

/** Empty where nothing was saved. */
export async function findAccuracy(): Promise<Accuracy> {
  try {
    // The cast is safe: the file belongs to the release, and only `npm run eval` writes it, from these types.
    const {
      runs = [],
      marked = [],
      published = [],
    } = JSON.parse(await readFile(ACCURACY_FILE, 'utf8')) as Partial<Accuracy>
    return { runs, marked, published }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      return { runs: [], marked: [], published: [] }
    throw error
  }
}

/** Written by hand, from the sources it names; the evaluation does not touch it. */
const OTHERS_FILE = new URL('accuracy-of-others.json', ACCURACY_FILE)

export async function findOthers(): Promise<readonly OthersFigure[]> {
  // The cast is safe: the file belongs to the release.
  return JSON.parse(await readFile(OTHERS_FILE, 'utf8')) as OthersFigure[]
}
