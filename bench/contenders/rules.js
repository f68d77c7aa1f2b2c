// What every contender asks of a request, for those whose framework brings no rules of its own.
export const statuses = ['available', 'pending', 'sold']

/** @returns {{limit: number, status: string | undefined, after: number} | undefined} undefined where a rule is broken */
export function readPage(limit = '20', status = undefined, cursor = '0') {
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > 100) return undefined
  if (status !== undefined && !statuses.includes(status)) return undefined
  if (!/^\d{1,18}$/.test(cursor)) return undefined
  return { limit: Number(limit), status, after: Number(cursor) }
}

/** @returns {{name: string, categoryId: number, status: string | undefined} | undefined} undefined where a rule is broken */
export function readNewPet(sent) {
  if (typeof sent !== 'object' || sent === null) return undefined
  const { name, categoryId, status } = sent
  if (typeof name !== 'string' || name.length > 1_000 || !/\S/.test(name)) return undefined
  if (!Number.isInteger(categoryId) || Math.abs(categoryId) > 2 ** 63) return undefined
  if (status !== undefined && !statuses.includes(status)) return undefined
  return { name, categoryId, status }
}

export function nextLink(limit, status, lastId) {
  const filter = status === undefined ? '' : `&status=${status}`
  return `</v1/pets?limit=${limit}${filter}&cursor=${lastId}>; rel="next"`
}
