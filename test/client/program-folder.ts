import { expect } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolder, run, temporaryFolder } from '../support/process.ts'

/** A folder for programs that import `petstore-client`: a clone has no built package, so its name leads to the sources. */
export function programFolder() {
  const folder = temporaryFolder()
  const compilerOptions = {
    // Not every example uses all that it imports.
    noUnusedLocals: false,
    typeRoots: [join(projectFolder, 'node_modules/@types')],
    paths: { 'petstore-client': [join(projectFolder, 'src/client/index.ts')] },
  }
  const write = (name: string, text: string) => writeFileSync(join(folder.path, name), text)
  const strict = join(projectFolder, 'tsconfig.json')
  write('tsconfig.json', JSON.stringify({ extends: strict, compilerOptions, include: ['*.ts'] }))
  return {
    write,
    /** Runs a program of the folder. */
    run: (name: string, env: Record<string, string>) =>
      run([process.execPath, '--no-env-file', name], { cwd: folder.path, env }),
    async expectTypesToPass(): Promise<void> {
      const tsc = await run([join(projectFolder, 'node_modules/.bin/tsc'), '--project', '.'], { cwd: folder.path })
      expect(tsc).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}
