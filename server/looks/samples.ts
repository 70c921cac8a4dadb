// The texts that come with the service, so that it can be tried without naming a page: one supports its claim, one contradicts it,
// one does not say enough. They are invented, and each is shown at /samples/{name}. A look at one is judged as any page is.

export interface Sample {
  name: string
  title: string
  /** What the page shows, without its title. */
  paragraphs: readonly string[]
  claim: string
  /** The example in a few words, for the button that fills it in. */
  label: string
}

export const SAMPLES: readonly Sample[] = [
  {
    name: 'harbour-bridge',
    title: 'The Ferrow harbour bridge',
    label: 'A figure in an article',
    claim: 'The harbour bridge in Ferrow opened in 1987.',
    paragraphs: [
      'The harbour bridge in Ferrow opened on 4 May 1987 and carries the coast road over the mouth of the river.',
      'It replaced a car ferry that had crossed the harbour since 1931. The bridge is 412 metres long and rests on three piers.',
      'About 18,000 vehicles cross it on a weekday. The toll was abolished in 2004, when the bridge had been paid for.',
    ],
  },
  {
    name: 'museum-hours',
    title: 'Visiting the Orle Museum of Clocks',
    label: 'Opening hours that were got wrong',
    claim: 'The Orle Museum of Clocks is open on Mondays.',
    paragraphs: [
      'The Orle Museum of Clocks shows some 900 clocks and watches from five centuries.',
      'The museum is open from Tuesday to Sunday, from 10 am to 5 pm. It is closed on Mondays.',
      'Admission is 8 euros; children under twelve are admitted free. The last tour begins at 4 pm.',
    ],
  },
  {
    name: 'library-release',
    title: 'Kestrel 4.0: release notes',
    label: 'A claim that goes beyond its source',
    claim: 'Kestrel 4.0 is twice as fast as Kestrel 3.',
    paragraphs: [
      'Kestrel 4.0 was released on 12 March. It needs Node 22 or newer, and drops the callback interface.',
      'The parser was rewritten and now reports the line and the column of every error.',
      'Connections are closed after 30 seconds without traffic. The previous default was 120 seconds.',
      'Thanks to the 41 people who contributed to this release.',
    ],
  },
]

/** The path of the page that shows a sample. */
export const samplePath = ({ name }: Pick<Sample, 'name'>) => `/samples/${name}`

export const findSample = (name: string): Sample | undefined => SAMPLES.find((sample) => sample.name === name)

/** The sample whose page has this address; undefined for any other page. @param baseUrl of the service */
export function sampleAt(url: string, baseUrl: string): Sample | undefined {
  const base = baseUrl.replace(/\/$/, '')
  return SAMPLES.find((sample) => url === `${base}${samplePath(sample)}`)
}
