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

/** Shadow trees that come with the markup, and what is shown of them and of their hosts. */
export const shadowPages: readonly (readonly [html: string, text: string])[] = [
  ['<div>x<template shadowrootmode=open>a</template>y</div>b', 'ab'],
  ['<div><template shadowrootmode=open>a<slot></slot>b</template>x<i>y</i></div>', 'axyb'],
  ['<p><template shadowrootmode=OPEN><slot name=s>f</slot>a<slot name=t>g</slot></template>x<b slot=s>y</b>z', 'yag'],
  [
    '<div><template shadowrootmode=open><slot name=s></slot><slot name=s>f</slot></template><b slot=s>y</b></div>',
    'yf',
  ],
  ['<x-y><template shadowrootmode=open>a</template>x</x-y>', 'a'],
  ['<a><template shadowrootmode=open>a</template>x</a>', 'x'],
  ['<div><template shadowrootmode=shut>a</template>x</div>', 'x'],
  ['<div><template shadowrootmode=open>a</template><template shadowrootmode=open>b</template>x</div>', 'a'],
  ['<template><div><template shadowrootmode=open>a</template>x</div></template>b', 'b'],
  [
    '<div><template shadowrootmode=open><p><template shadowrootmode=open>a<slot></slot></template>b<slot></slot></template>x</div>',
    'abx',
  ],
  [
    '<style>i{display:none}</style><div><template shadowrootmode=open><i>a</i><slot></slot></template><i>x</i>y</div>',
    'ay',
  ],
  [
    '<i>x</i><div><template shadowrootmode=open><style>i{display:none}</style><i>a</i><slot></slot></template><i>y</i></div>',
    'xy',
  ],
  [
    '<div style="visibility:hidden"><template shadowrootmode=open>a<b style="visibility:visible">b</b></template></div>',
    'b',
  ],
  ['<div><template shadowrootmode=open><div style="display:none"><slot></slot></div>a</template>x</div>', 'a'],
]
