// Which addresses are public: the first and last address of every special block, and the neighbours on both sides.
import t from 'tap'
import { canonicalAddress, ipv6Groups, isPublicAddress, specialBlockOf } from '../../server/outbound/addresses.ts'

// Copied by hand from the registries, not computed from the table under test. `neighbours` are the public addresses next to a
// block, where there are any.
const blocks: { block: string; first: string; last: string; inside?: string[]; neighbours?: string[] }[] = [
  { block: '0.0.0.0/8', first: '0.0.0.0', last: '0.255.255.255', neighbours: ['1.0.0.0'] },
  {
    block: '10.0.0.0/8',
    first: '10.0.0.0',
    last: '10.255.255.255',
    inside: ['10.1.2.3'],
    neighbours: ['9.255.255.255', '11.0.0.0'],
  },
  {
    block: '100.64.0.0/10',
    first: '100.64.0.0',
    last: '100.127.255.255',
    inside: ['100.100.100.200'],
    neighbours: ['100.63.255.255', '100.128.0.0'],
  },
  {
    block: '127.0.0.0/8',
    first: '127.0.0.0',
    last: '127.255.255.255',
    inside: ['127.0.0.1', '127.0.0.53', '127.1.1.1'],
    neighbours: ['126.255.255.255', '128.0.0.0'],
  },
  {
    block: '169.254.0.0/16',
    first: '169.254.0.0',
    last: '169.254.255.255',
    inside: ['169.254.169.254', '169.254.170.2', '169.254.170.23', '169.254.0.23', '169.254.169.253'],
    neighbours: ['169.253.255.255', '169.255.0.0'],
  },
  {
    block: '172.16.0.0/12',
    first: '172.16.0.0',
    last: '172.31.255.255',
    inside: ['172.17.0.1'],
    neighbours: ['172.15.255.255', '172.32.0.0'],
  },
  {
    block: '192.0.0.0/24',
    first: '192.0.0.0',
    last: '192.0.0.255',
    inside: ['192.0.0.8', '192.0.0.9', '192.0.0.10', '192.0.0.170', '192.0.0.171', '192.0.0.192'],
    neighbours: ['191.255.255.255', '192.0.1.0'],
  },
  { block: '192.0.2.0/24', first: '192.0.2.0', last: '192.0.2.255', neighbours: ['192.0.1.255', '192.0.3.0'] },
  {
    block: '192.31.196.0/24',
    first: '192.31.196.0',
    last: '192.31.196.255',
    neighbours: ['192.31.195.255', '192.31.197.0'],
  },
  {
    block: '192.52.193.0/24',
    first: '192.52.193.0',
    last: '192.52.193.255',
    neighbours: ['192.52.192.255', '192.52.194.0'],
  },
  {
    block: '192.88.99.0/24',
    first: '192.88.99.0',
    last: '192.88.99.255',
    neighbours: ['192.88.98.255', '192.88.100.0'],
  },
  {
    block: '192.168.0.0/16',
    first: '192.168.0.0',
    last: '192.168.255.255',
    neighbours: ['192.167.255.255', '192.169.0.0'],
  },
  {
    block: '192.175.48.0/24',
    first: '192.175.48.0',
    last: '192.175.48.255',
    neighbours: ['192.175.47.255', '192.175.49.0'],
  },
  { block: '198.18.0.0/15', first: '198.18.0.0', last: '198.19.255.255', neighbours: ['198.17.255.255', '198.20.0.0'] },
  {
    block: '198.51.100.0/24',
    first: '198.51.100.0',
    last: '198.51.100.255',
    neighbours: ['198.51.99.255', '198.51.101.0'],
  },
  {
    block: '203.0.113.0/24',
    first: '203.0.113.0',
    last: '203.0.113.255',
    neighbours: ['203.0.112.255', '203.0.114.0'],
  },
  {
    block: '224.0.0.0/4',
    first: '224.0.0.0',
    last: '239.255.255.255',
    inside: ['232.0.0.1', '239.255.255.250'],
    neighbours: ['223.255.255.255'],
  },
  { block: '240.0.0.0/4', first: '240.0.0.0', last: '255.255.255.255', inside: ['250.1.2.3'] },
  {
    block: '168.63.129.16/32',
    first: '168.63.129.16',
    last: '168.63.129.16',
    neighbours: ['168.63.129.15', '168.63.129.17'],
  },
  { block: '::/128', first: '::', last: '0:0:0:0:0:0:0:0' },
  { block: '::1/128', first: '::1', last: '0:0:0:0:0:0:0:1', inside: ['::0.0.0.1'] },
  {
    block: '::/96',
    first: '::2',
    last: '::ffff:ffff',
    inside: ['::a9fe:a9fe', '::127.0.0.1', '::7f00:1', '::8.8.8.8'],
  },
  {
    block: '::ffff:0:0/96',
    first: '::ffff:0:0',
    last: '::ffff:ffff:ffff',
    inside: ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:169.254.169.254', '::ffff:8.8.8.8', '::FFFF:808:808'],
  },
  {
    block: '::ffff:0:0:0/96',
    first: '::ffff:0:0:0',
    last: '::ffff:0:ffff:ffff',
    inside: ['::ffff:0:127.0.0.1', '::ffff:0:808:808'],
  },
  {
    block: '64:ff9b::/96',
    first: '64:ff9b::',
    last: '64:ff9b::ffff:ffff',
    inside: ['64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b::808:808'],
  },
  {
    block: '64:ff9b:1::/48',
    first: '64:ff9b:1::',
    last: '64:ff9b:1:ffff:ffff:ffff:ffff:ffff',
    inside: ['64:ff9b:1::7f00:1'],
  },
  { block: '100::/64', first: '100::', last: '100::ffff:ffff:ffff:ffff' },
  { block: '100:0:0:1::/64', first: '100:0:0:1::', last: '100:0:0:1:ffff:ffff:ffff:ffff' },
  {
    block: '2001::/23',
    first: '2001::',
    last: '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff',
    // Teredo; the port control and TURN anycasts; benchmarking; AMT; AS112; ORCHID, ORCHIDv2; drone identifiers.
    inside: [
      '2001:0:4136:e378:8000:63bf:3fff:fdd2',
      '2001:1::1',
      '2001:1::2',
      '2001:1::3',
      '2001:2::1',
      '2001:3::1',
      '2001:4:112::1',
      '2001:10::1',
      '2001:20::1',
      '2001:30::1',
    ],
    neighbours: ['2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:200::'],
  },
  {
    block: '2001:db8::/32',
    first: '2001:db8::',
    last: '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
    neighbours: ['2001:db7:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db9::'],
  },
  {
    block: '2002::/16',
    first: '2002::',
    last: '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    inside: ['2002:7f00:1::', '2002:a9fe:a9fe::1', '2002:808:808::1'],
    neighbours: ['2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2003::'],
  },
  {
    block: '2620:4f:8000::/48',
    first: '2620:4f:8000::',
    last: '2620:4f:8000:ffff:ffff:ffff:ffff:ffff',
    neighbours: ['2620:4f:7fff:ffff:ffff:ffff:ffff:ffff', '2620:4f:8001::'],
  },
  {
    block: '3fff::/20',
    first: '3fff::',
    last: '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff',
    neighbours: ['3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '3fff:1000::'],
  },
  { block: '5f00::/16', first: '5f00::', last: '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff' },
  {
    block: 'fc00::/7',
    first: 'fc00::',
    last: 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    inside: ['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'],
  },
  { block: 'fe80::/10', first: 'fe80::', last: 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', inside: ['fe80::a9fe:a9fe'] },
  { block: 'fec0::/10', first: 'fec0::', last: 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff' },
  {
    block: 'ff00::/8',
    first: 'ff00::',
    last: 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    inside: ['ff02::1', 'ff0e::1'],
  },
  // Outside 2000::/3 without a row of their own: unallocated.
  { block: '::/0', first: '1::', last: '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', neighbours: ['2000::'] },
  {
    block: '::/0',
    first: '4000::',
    last: 'fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    inside: ['200::1', '8000::1', 'e000::1', '64:ff9c::1', '101::'],
    neighbours: ['3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  },
]

for (const { block, first, last, inside = [], neighbours = [] } of blocks)
  t.test(`${block} ${first}`, async (t) => {
    for (const address of [first, last, ...inside]) {
      t.equal(specialBlockOf(address)?.cidr, block, address)
      t.equal(isPublicAddress(address), false, address)
    }
    for (const address of neighbours) t.equal(specialBlockOf(address), null, `${address} is public`)
  })

t.test('public addresses', async (t) => {
  const addresses = [
    ...[
      '1.1.1.1',
      '8.8.8.8',
      '93.184.216.34',
      '104.16.0.1',
      '151.101.1.69',
      '192.0.1.1',
      '198.41.0.4',
      '223.255.255.254',
    ],
    ...['2606:4700:4700::1111', '2a00:1450:4001:82a::200e', '2001:4860:4860::8888', '2400:cb00::1', '2c0f:fb50::1'],
    '2606:2800:220:1:248:1893:25c8:1946',
  ]
  for (const address of addresses) t.equal(specialBlockOf(address), null, address)
})

t.test('an IPv4 address in an ISATAP interface identifier is refused under any prefix', async (t) => {
  const refused = [
    '2001:470::5efe:a00:1',
    '2001:470:1:2:0:5efe:10.0.0.1',
    '2a00:1:2:3:200:5efe:808:808',
    '2600::5efe:0:1',
  ]
  for (const address of refused) t.match(specialBlockOf(address)?.name, /ISATAP/, address)
  for (const address of ['2001:470:1:2:1:5efe:a00:1', '2001:470:1:5efe::a00:1', '2001:470:1:2:5efe:0:a00:1'])
    t.equal(specialBlockOf(address), null, address)
})

t.test('text that is not an address in plain form is not public', async (t) => {
  const texts = [
    ...['', ' ', 'localhost', 'example.com', '127.1', '0177.0.0.1', '0x7f.0.0.1', '2130706433', '8.8.8.8 ', ' 8.8.8.8'],
    ...[
      '8.8.8',
      '8.8.8.8.8',
      '256.8.8.8',
      '08.8.8.8',
      '8.8.8.8/32',
      '8.8.8.8:443',
      '[2606:4700::1]',
      '2606:4700::1::2',
    ],
    ...['fe80::1%lo', '2606:4700::1%eth0', '2606:4700::1%25eth0', '8.8.8.8%lo', '::ffff:8.8.8.8%1', '2606:4700::1/64'],
    ...['８.８.８.８', '8。8。8。8', '8.8.8.8\0', '8.8.8.8\n'],
  ]
  for (const text of texts) t.equal(isPublicAddress(text), false, JSON.stringify(text))
})

t.test('one text for one address', async (t) => {
  const same: [string, string][] = [
    ['2606:2800:0220:0001:0248:1893:25C8:1946', '2606:2800:220:1:248:1893:25c8:1946'],
    ['2001:4860:4860:0:0:0:0:8888', '2001:4860:4860::8888'],
    ['2a00:0:0:0:1:0:0:1', '2a00::1:0:0:1'],
    ['::ffff:1.2.3.4', '::ffff:102:304'],
    ['1.2.3.4', '1.2.3.4'],
    ['fe80::1%lo', 'fe80::1%lo'],
    ['', ''],
  ]
  for (const [given, expected] of same) t.equal(canonicalAddress(given), expected)
  t.same(ipv6Groups('::'), [0, 0, 0, 0, 0, 0, 0, 0])
  t.same(ipv6Groups('1:2:3:4:5:6:7:8'), [1, 2, 3, 4, 5, 6, 7, 8])
  t.same(ipv6Groups('64:ff9b::192.0.0.170'), [0x64, 0xff9b, 0, 0, 0, 0, 0xc000, 0xaa])
  t.same(ipv6Groups('fe80::'), [0xfe80, 0, 0, 0, 0, 0, 0, 0])
})
