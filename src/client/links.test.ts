import { expect, test } from 'bun:test'
import { readLinks } from './links.ts'

const base = 'http://127.0.0.1:8080/v1/pets?limit=2'
const at = (path: string) => `http://127.0.0.1:8080${path}`

test.each([
  ['</v1/pets?cursor=a>; rel="next"', [['next', at('/v1/pets?cursor=a')]]],
  ['</v1/pets?cursor=a>;rel=next', [['next', at('/v1/pets?cursor=a')]]],
  ['<?cursor=a>; REL="NEXT"', [['next', at('/v1/pets?cursor=a')]]],
  ['<https://pets.example.com/v1/pets>; rel="next"', [['next', 'https://pets.example.com/v1/pets']]],
  [
    '</a>; rel="next last"',
    [
      ['next', at('/a')],
      ['last', at('/a')],
    ],
  ],
  [
    '</a>; rel="prev", </b>; rel="next"',
    [
      ['prev', at('/a')],
      ['next', at('/b')],
    ],
  ],
  ['</a,b>; title="x, <y>; rel=\\"prev\\""; rel="next"', [['next', at('/a,b')]]],
  ['</a>; title="; rel=prev"; rel=next; rel=last', [['next', at('/a')]]],
  ['</a>; rel="next"; type="application/json"', [['next', at('/a')]]],
  ['</a>', []],
  ['</a>; rel=""', []],
  ['<http://[>; rel="next"', []],
  ['rel="next"', []],
  ['<', []],
  ['', []],
  [null, []],
])('Link: %s', (header, links) => {
  expect(readLinks(header, base)).toEqual(links.map(([rel = '', href = '']) => ({ rel, href })))
})
