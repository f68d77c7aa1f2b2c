export { animalBody } from './load.ts'
