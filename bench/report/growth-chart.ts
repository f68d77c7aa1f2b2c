import { scaleLinear, scaleLog } from 'd3-scale'
import { line } from 'd3-shape'
import type { Growth, GrowthLine } from '../comparisons/growth.ts'
import { fixed, path, picture, text } from './svg.ts'

const width = 760
const height = 380
const plot = { left: 60, right: 560, top: 56, bottom: 330 }
const limit = 1.15
/** Told apart by eyes that see colours differently, on white and on black. */
const colours = ['#2f81f7', '#d29922', '#3fb950', '#db61a2', '#8957e5']
const labelHeight = 17

/** What a request costs, against the smallest catalogue. */
export function drawGrowth({ sizes, lines }: Growth): string {
  const costs = lines.flatMap(each => each.costs.map(cost => cost?.median ?? 1))
  const x = scaleLog()
    .domain([sizes[0] ?? 1, sizes.at(-1) ?? 10])
    .range([plot.left, plot.right])
  const y = scaleLinear()
    .domain([Math.min(0.8, ...costs), Math.max(1.3, ...costs)])
    .nice()
    .range([plot.bottom, plot.top])
  return picture(width, height, 'What a request costs as the catalogue grows', [
    text(16, 28, 'Cost of a request, against a catalogue of 1 thousand', 'class="title"'),
    ...y
      .ticks(6)
      .flatMap(tick => [
        path(`M${plot.left} ${fixed(y(tick))}H${plot.right}`, 'grid'),
        text(plot.left - 8, y(tick) + 4, tick.toFixed(1), 'class="quiet" text-anchor="end"'),
      ]),
    ...sizes.map(size =>
      text(x(size), plot.bottom + 24, `${size.toLocaleString('en')}`, 'class="quiet" text-anchor="middle"'),
    ),
    text((plot.left + plot.right) / 2, plot.bottom + 42, 'animals', 'class="quiet" text-anchor="middle"'),
    path(`M${plot.left} ${fixed(y(limit))}H${plot.right}`, 'limit'),
    text(plot.right - 6, y(limit) - 6, `wanted: at most ${limit}`, 'class="quiet" text-anchor="end"'),
    ...lines.flatMap((each, i) => drawLine(each, sizes, x, y, colours[i] ?? '')),
    ...drawLabels(lines, y),
  ])
}

function drawLine(
  { costs }: GrowthLine,
  sizes: readonly number[],
  x: (size: number) => number,
  y: (cost: number) => number,
  colour: string,
): readonly string[] {
  const points = sizes.map((size, i) => ({ x: x(size), y: y(costs[i]?.median ?? 1) }))
  const d = line<(typeof points)[number]>()
    .x(point => Math.round(point.x))
    .y(point => Math.round(point.y))(points)
  return [
    path(d ?? '', 'line', `stroke="${colour}"`),
    ...points.map(
      point => `<circle cx="${fixed(point.x)}" cy="${fixed(point.y)}" r="3.5" fill="${colour}"/>`,
    ),
  ]
}

/** Names stand where their lines end, and apart from one another. */
function drawLabels(lines: readonly GrowthLine[], y: (cost: number) => number): readonly string[] {
  const ends = lines
    .map(({ work, costs }, i) => ({
      name: work.title.replace('a million deep', 'deep down'),
      colour: colours[i],
      cost: costs.at(-1)?.median ?? 1,
    }))
    .toSorted((a, b) => b.cost - a.cost)
  let free = plot.top
  return ends.flatMap(({ name, colour, cost }) => {
    const at = Math.max(y(cost), free)
    free = at + labelHeight
    return [
      `<circle cx="${plot.right + 16}" cy="${fixed(at)}" r="4" fill="${colour}"/>`,
      text(plot.right + 26, at + 4.5, `${name} ${cost.toFixed(2)}`),
    ]
  })
}
