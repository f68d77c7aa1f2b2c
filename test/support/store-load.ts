export { answerMsMax, startLoad } from './load.ts'
export { portOf } from './process.ts'
