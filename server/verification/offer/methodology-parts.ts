// What each part of a `methodology_version` means, at the place where it stands.

/** A part that may be at one place of a version. Old procedures keep their entries, because their results are still in use. */
export interface Place {
  form: RegExp
  meaning: string
}

export const OBSERVATION: readonly (readonly Place[])[] = [
  [
    {
      form: /^retrieval-1$/,
      meaning:
        'How the page is fetched: one GET over verified TLS to port 443 of a public address, no cookies, no scripts; up to ' +
        'five redirects, each judged and resolved anew. Only a 200 with text/html or text/plain is read, within the limits ' +
        'that the result repeats.',
    },
  ],
  [
    {
      form: /^text-1$/,
      meaning:
        'How bytes become normalized_text: decoded by the rules of WHATWG; of HTML, what a browser without scripts and ' +
        'external style sheets would show, in the order of the markup; NFC, lines parted by U+000A, at most 100,000 code ' +
        'points. The title element is not shown on the page and is not part of it.',
    },
    {
      form: /^text-2$/,
      meaning:
        'As text-1, with the style sheets inside the page read more closely (layers, nested rules, media queries for a window of ' +
        '1280 by 720 pixels); text is left out only where they hide it for certain. Letters keep the case of the markup, and ' +
        'blanks that browsers do not collapse become spaces one by one.',
    },
    {
      form: /^text-3$/,
      meaning:
        'As text-2, but the work that style sheets may cost is counted, and beyond a budget rules are passed over, which ' +
        'style_passed_over says; a page with more than 1,000,000 attributes is refused.',
    },
    {
      form: /^text-4$/,
      meaning:
        'As text-3, but of SVG, MathML and lists of options only those characters that browsers draw: what else these elements ' +
        'hold, or their attributes hide, is left out. Of an element with a shadow tree in the markup, the tree is read, and those ' +
        'of its children that have a slot there.',
    },
  ],
  [{ form: /^parse5-\d+(\.\d+){2}$/, meaning: 'Version of the HTML parser.' }],
  [{ form: /^bytes-\d+(\.\d+){2}$/, meaning: 'Version of the library that decodes charsets.' }],
]

const TOOLS: readonly (readonly Place[])[] = [
  [
    {
      form: /^icu-\d+(\.\d+)*$/,
      meaning: 'Version of ICU: where sentences end, and the names of months.',
    },
  ],
  [{ form: /^unicode-\d+(\.\d+)*$/, meaning: 'Version of Unicode: the classes of characters.' }],
]

const GATE: readonly Place[] = [
  {
    form: /^gate-1$/,
    meaning:
      'Pages that answer 200 and are something else (a check for robots, a log-in wall, a missing page, a shell that needs ' +
      'scripts) are refused uncharged before assessment, or flagged where that is not certain.',
  },
  {
    form: /^gate-2$/,
    meaning:
      'Pages that answer 200 and are something else (a check for robots, a log-in wall, a missing page, a shell that needs ' +
      'scripts) are refused uncharged before assessment only if they have almost no other text and the words of the claim ' +
      'are not in it. Otherwise a risk flag names the doubt.',
  },
  {
    form: /^gate-3$/,
    meaning: 'As gate-2, and a line that asks to log in for one act, such as a comment, is no sign of a log-in wall.',
  },
  {
    form: /^gate-4$/,
    meaning: 'As gate-3; words of the claim are found by their stems, as the literal assessment finds them.',
  },
]

export const LITERAL: readonly (readonly Place[])[] = [
  [
    {
      form: /^literal-1$/,
      meaning:
        'Literal assessment: no model is asked. Up to six passages that share the words of the claim are quoted, the best ' +
        'first, and numbers, dates, units and negations are compared. No verdict is given.',
    },
    {
      form: /^literal-2$/,
      meaning:
        'Literal assessment: no model is asked. Whether the page has enough of the words of the claim is decided once for ' +
        'the page; then up to six passages are quoted, the best first, and numbers, dates, units and negations are ' +
        'compared. No verdict is given.',
    },
    {
      form: /^literal-3$/,
      meaning:
        'As literal-2; "more than" and "before" leave out the number itself, days of a range, spelled numbers of German, ' +
        'French, Spanish, Portuguese and Arabic and Chinese numerals are read, and a flag says where a language is not known.',
    },
    {
      form: /^literal-4$/,
      meaning:
        'As literal-3; whether the page has enough of the claim is asked of five sentences in a row and of the page, and a ' +
        'number counts as much as a word. A month without day and year is a date. Names tell no language.',
    },
    {
      form: /^literal-5$/,
      meaning:
        "As literal-4; words of one English stem (Porter's rules) count nearly as the same word, and words that only begin " +
        'alike count less.',
    },
    {
      form: /^literal-6$/,
      meaning:
        'As literal-5; in the order of the passages, a run of words of the claim counts more, and numbers that agree count ' +
        'less.',
    },
    {
      form: /^literal-7$/,
      meaning:
        'As literal-6; a page that is hardly longer than a quotation is quoted where it has one telling word of the claim. ' +
        '"Not only", "no fewer than" and "not until" deny nothing, nor does what a comma or "and" parts from the words of ' +
        'the claim.',
    },
    {
      form: /^literal-8$/,
      meaning:
        'As literal-7; numbers in words, halves, quarters and dozens have their value, a century is a span of years, and the ' +
        'ending of an ordinal is not searched for.',
    },
    {
      form: /^literal-9$/,
      meaning:
        'As literal-8; a heading without a sentence ranks lower, the first two quotes may go on to the next sentence, pairs of ' +
        'characters with a function word of Chinese count little, and a date that agrees with any date of the claim is no ' +
        'other date. Amounts in words (a third, twice a day) and numbers of versions are read. The explanation is in other words.',
    },
    {
      form: /^literal-10$/,
      meaning:
        'Literal assessment: no model is asked. Passages are ranked by BM25 over the words of the claim and their English ' +
        'stems, and up to six are quoted, the best first, if two words of the claim are together. A place with the whole ' +
        'claim comes first. Words and numbers that are not on the page are named; nothing else is compared. No verdict is given.',
    },
    {
      form: /^literal-11$/,
      meaning:
        'As literal-10; the score is the one by which the local verifier chooses passages, and sentences are ranked one by one. ' +
        'Words in other letters than plain Latin ones agree by their first six.',
    },
  ],
  ...TOOLS,
  GATE,
]

export const LOCAL: readonly (readonly Place[])[] = [
  [
    {
      form: /^local-1$/,
      meaning:
        'Local assessment: a small model that comes with the service reads the six passages nearest to the claim (BM25), ' +
        'each alone. The verdict is supports or contradicts where the larger probability reaches 0.9, mixed where both do ' +
        'in two passages, else insufficient_evidence. Anyone can recompute it from the text and the claim.',
    },
  ],
  [{ form: /^[0-9a-f]{16}$/, meaning: 'The first 16 digits of the SHA-256 of the weights, which are at /model/.' }],
  GATE,
]

export const SEMANTIC: readonly (readonly Place[])[] = [
  [
    {
      form: /^semantic-1$/,
      meaning:
        'Semantic assessment: a language model names lines of the text and what they do to the claim. The quotes are cut ' +
        'and proved by this service, numbers, dates, units and negations are checked without the model, and the verdict ' +
        'is lowered to what survives.',
    },
    {
      form: /^semantic-2$/,
      meaning:
        'Semantic assessment: a language model names lines of the text and what they do to the claim. The quotes are cut ' +
        'and proved by this service, a bounded number of quantities of the claim, dates, units and negations are checked ' +
        'without the model, and the verdict is lowered to what survives.',
    },
    {
      form: /^semantic-3$/,
      meaning:
        'Semantic assessment: a language model names lines of the text and what they do to the claim. The quotes are cut ' +
        'and proved by this service. Without the model it checks numbers, dates and units (bounds such as "more than" as ' +
        'inequalities), negations, opposites, quoted words, names and whether the lines are about the claim; a verdict ' +
        'against a claim is checked for lines that say the claim itself. The verdict is lowered to what survives.',
    },
    {
      form: /^semantic-4$/,
      meaning:
        'As semantic-3, with fewer true verdicts lowered: lines are held to be about another matter where their page lacks ' +
        'half of the words of the claim, and a verdict against a claim is doubted where its lines have all of a short claim ' +
        'or most of a long one. "More than" and "before" leave out the number itself; another name in the place of one is a ' +
        'reason to doubt. Orders to programs are recognised by their build, and left out with the rest of their paragraph.',
    },
    {
      form: /^semantic-5$/,
      meaning:
        'As semantic-4; lines support a claim only if they, what is nearby and the page have enough of its words and ' +
        'numbers. Absent names and quotations are mentioned and lower nothing. Months, ranks and what a claim denies ' +
        'by a verb are compared. A verdict against a claim is doubted where its lines have most of a long claim, ' +
        'unless they say otherwise. The whole paragraph of an order to programs is left out.',
    },
    {
      form: /^semantic-6$/,
      meaning:
        'As semantic-5; on pages longer than a quotation the words and numbers that lines for a claim lack are weighed, by ' +
        'weights fitted on marked evidence. Lines that call their subject another kind of thing than the claim do not ' +
        'support it. For a verdict against a claim the lines nearby count too. Words are akin as in literal-5.',
    },
    {
      form: /^semantic-7$/,
      meaning:
        'As semantic-6; the model is shown only paragraphs that have a word, number, date or kind of measure of the claim, ' +
        'unless the page is one paragraph or in another language. Orders to programs are left out of the first reading; ' +
        'where no paragraph is left, no model is asked.',
    },
    {
      form: /^semantic-8$/,
      meaning:
        'As semantic-7; negations are read as in literal-7, and another number, date, rank or name in the place of one that ' +
        'the claim denies bears the claim out.',
    },
    {
      form: /^semantic-9$/,
      meaning:
        'As semantic-8, with the numbers and dates of literal-8. An event that is told from its other side is no opposite; an ' +
        'end or an absence negates without "not". A contradiction is doubted also where the lines name the subject by a part ' +
        'of its name or by a pronoun, and where a bounded number is kept; not where they name another agent.',
    },
    {
      form: /^semantic-10$/,
      meaning:
        'As semantic-9; on a page longer than a quotation, lines contradict a claim only if its words are near them and on ' +
        'the page. Lines are called unrelated to a claim only if many of its words are absent, and a large share; in other ' +
        'languages than English the absent words are not weighed. Numbers are read as in literal-9, and one that follows from ' +
        'two quoted ones is given. More opposites, and more orders to programs, are known. The explanation is in other words.',
    },
    {
      form: /^semantic-11$/,
      meaning:
        'Semantic assessment: a language model splits the claim into its parts and gives for each numbers of lines and a word ' +
        'of a closed list. The verdict is derived from them: one contradicted part contradicts the claim, and it is supported ' +
        'if all parts are. The quotes are cut and proved by this service. The model is shown the paragraphs that share a word ' +
        'or have a number where the claim has one, those beside them, and lines that refer back; a sentence that gives orders ' +
        'to programs is left out alone, and if it has words of the claim, there is no verdict. A verdict is withdrawn only if ' +
        'its lines cannot be quoted, if suspicious text carries it, or if words that the claim attributes to somebody are not ' +
        'on the page.',
    },
    {
      form: /^semantic-12$/,
      meaning:
        'As semantic-11; the verdict that a claim is supported is also withdrawn if none of its quotes holds a number that ' +
        'the claim states. Numbers are compared by value; one that the claim rounds or bounds is held by any number.',
    },
    {
      form: /^semantic-13$/,
      meaning:
        'As semantic-12; the words that a paragraph shares with the claim are found as the literal assessment finds them.',
    },
    {
      form: /^semantic-14$/,
      meaning:
        'As semantic-13; each part of a long text begins with the first line of the page, its title, and numbers of the claim ' +
        'are compared by fewer rules: quotes with a half, a dozen or hundreds in words are not compared.',
    },
  ],
  [{ form: /^[A-Za-z0-9._:/@~-]{1,40}$/, meaning: 'The model that was asked.' }],
  [{ form: /^prompt-[0-9a-f]{8}$/, meaning: 'Digest of everything that the model is given besides page and claim.' }],
  [
    {
      form: /^w\d{3,6}$/,
      meaning: 'Tokens of page text in one question; longer texts are asked about in overlapping parts.',
    },
  ],
  ...TOOLS,
  GATE,
]
