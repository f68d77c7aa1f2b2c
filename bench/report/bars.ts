import { scaleBand, scaleLinear } from 'd3-scale'
import { path, picture, rectangle, text } from './svg.ts'

/** Some panels of bars, one below the other, each with its own scale. */
export interface Panel {
  readonly title: string
  readonly unit: string
  readonly bars: readonly Bar[]
}

export interface Bar {
  readonly name: string
  readonly kind: 'ours' | 'ceiling' | 'other'
  readonly value: number
  readonly low: number
  readonly high: number
}

const width = 760
const left = 225
const right = 110
const rowHeight = 24
const panelHead = 34
const panelGap = 18

export function drawBars(label: string, panels: readonly Panel[]): string {
  const inside: string[] = []
  let top = 14
  for (const panel of panels) {
    inside.push(...drawPanel(panel, top))
    top += panelHead + panel.bars.length * rowHeight + panelGap
  }
  return picture(width, top, label, inside)
}

function drawPanel({ title, unit, bars }: Panel, top: number): readonly string[] {
  const begin = top + panelHead
  const x = scaleLinear()
    .domain([0, Math.max(...bars.map(({ high }) => high))])
    .range([left, width - right])
  // By their place: two contenders may bear the same name one day.
  const y = scaleBand()
    .domain(bars.map((_, i) => String(i)))
    .range([begin, begin + bars.length * rowHeight])
    .padding(0.25)
  return [
    text(16, top + 18, title, 'class="title"'),
    text(width - 16, top + 18, unit, 'class="quiet" text-anchor="end"'),
    ...bars.flatMap((bar, i) => drawBar(bar, y(String(i)) ?? begin, y.bandwidth(), x)),
  ]
}

function drawBar(bar: Bar, top: number, height: number, x: (value: number) => number): readonly string[] {
  const middle = top + height / 2
  const [low, high] = [x(bar.low), x(bar.high)]
  const whisker = bar.low === bar.high ? [] : [path(`M${low} ${middle}H${high}`, 'spread')]
  return [
    text(
      left - 10,
      middle + 4.5,
      bar.name,
      `text-anchor="end"${bar.kind === 'ours' ? ' font-weight="600"' : ''}`,
    ),
    rectangle(left, top, x(bar.value) - left, height, bar.kind),
    ...whisker,
    text(Math.max(high, x(bar.value)) + 8, middle + 4.5, showFigure(bar.value)),
  ]
}

function showFigure(value: number): string {
  return value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en')
}
