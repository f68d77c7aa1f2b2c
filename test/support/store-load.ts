export { answerMsMax, portOf, startLoad } from './load.ts'
