export {
  adding,
  answering,
  changedList,
  listing,
  refusing,
  rewriting,
  taking,
  trusting,
} from './wrong-server.ts'
