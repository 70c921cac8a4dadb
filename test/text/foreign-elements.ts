// Markup that puts a word into every element of HTML, SVG and MathML, in every place where one may be.

const HTML =
  'a abbr acronym address article aside b bdi bdo big blink blockquote button caption center cite code dd del dfn dir div dl dt em ' +
  'fieldset figcaption figure font footer form h1 header hgroup i ins kbd label legend li listing main map mark marquee menu nav nobr ' +
  'object ol optgroup option output p picture pre q rb rp rt rtc ruby s samp search section select slot small span strike strong sub ' +
  'summary sup table tbody td tfoot th thead time tr tt u ul var x-y xmp audio canvas datalist dialog head iframe meter noembed ' +
  'noframes noscript progress script style template textarea title video'
const SVG =
  'a altGlyph animate animateMotion circle cursor desc discard ellipse feBlend filter font foreignObject g glyph glyphRef hatch image line ' +
  'linearGradient mesh metadata missing-glyph mpath path polygon polyline rect script set solidcolor stop style svg switch text textPath ' +
  'title tref tspan unknown use view'
const MATHML =
  'maction math menclose merror mfenced mfrac mglyph mi mlabeledtr mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms ' +
  'mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none semantics unknown'

const placesIn: readonly (readonly [names: string, places: readonly ((name: string) => string)[]])[] = [
  [HTML, [(name) => `<${name}>WORD</${name}>`, (name) => `<${name}><b>WORD</b></${name}>`]],
  [
    SVG,
    [
      (name) => `<svg><${name}>WORD</${name}></svg>`,
      (name) => `<svg><${name}><text>WORD</text></${name}></svg>`,
      (name) => `<svg><text>x<${name}>WORD</${name}></text></svg>`,
      (name) => `<svg><text><tspan>x<${name}>WORD</${name}></tspan></text></svg>`,
      (name) => `<svg><text>x<a><${name}>WORD</${name}></a></text></svg>`,
      (name) => `<svg><switch><text>x</text><${name}><text>WORD</text></${name}></switch></svg>`,
    ],
  ],
  [
    MATHML,
    [
      (name) => `<math><${name}>WORD</${name}></math>`,
      (name) => `<math><${name}><mtext>WORD</mtext></${name}></math>`,
      (name) => `<math><${name}><mi>x</mi><mtext>WORD</mtext></${name}></math>`,
    ],
  ],
]

export const elementsWithWord: readonly string[] = placesIn.flatMap(([names, places]) =>
  names.split(' ').flatMap((name) => places.map((place) => `<!doctype html>a ${place(name)} b`)),
)
