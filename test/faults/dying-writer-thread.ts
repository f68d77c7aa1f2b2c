import { Committer } from '../../src/store/sqlite/writer-thread.ts'

/** An animal of this name ends the thread before anything of its commit is written. */
export const diesBefore = 'Die'
/** An animal of this name ends the thread when its commit is on disk, before the reply. */
export const diesAfter = 'Die after the commit'

/** The real writer thread, except for the animals that end it. */
if (!Bun.isMainThread) {
  const { commit } = Committer.prototype
  Committer.prototype.commit = function (batch) {
    const has = (name: string) => batch.some(write => write.type === 'createPet' && write.name === name)
    if (has(diesBefore)) process.exit(1)
    const outcome = commit.call(this, batch)
    if (has(diesAfter)) process.exit(1)
    return outcome
  }
}
