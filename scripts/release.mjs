// `npm run release`: checks that the versions, the changelog and the tag agree, then builds the release in dist/release.
// `npm run release -- --check` only checks. Two builds of one commit, with the same Node and npm, give the same bytes.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { gzipSync } from 'node:zlib'

process.on('uncaughtException', error => fail(error.message))
const args = process.argv.slice(2)
if (args.some(arg => arg !== '--check')) fail('Usage: npm run release [-- --check]')

const { name, version } = JSON.parse(readFileSync('package.json', 'utf8'))
const head = output('git', 'rev-parse', 'HEAD').trim()
const problems = [
  ...versionProblems(),
  ...documentProblems(),
  ...outdatedSentences(),
  ...changelogProblems(),
  ...gitProblems(),
]
if (problems.length > 0) fail([`Version ${version} cannot be released:`, ...problems].join('\n  '))
if (args.length > 0) console.log(`Version ${version} can be released`)
else build()

function* versionProblems() {
  for (const [file, versionsOf] of [
    ['package-lock.json', lock => [lock.version, lock.packages[''].version]],
    ['src/client/package.json', manifest => [manifest.version]],
  ]) {
    try {
      const others = versionsOf(JSON.parse(readFileSync(file, 'utf8'))).filter(found => found !== version)
      const found = others[0] ? `version ${others[0]}` : 'no version'
      if (others.length > 0) yield `${file} has ${found}, but package.json has version ${version}`
    } catch (error) {
      yield `${file} cannot be read: ${error.message}`
    }
  }
}

/** Files, images and labels that documents and manifests name, such as petstore-1.0.0.tgz. */
function* documentProblems() {
  const pattern = '(petstore(-client)?[-:]|image\\.version=)[0-9]+\\.[0-9]+\\.[0-9]+(-(alpha|beta|rc)(\\.[0-9]+)?)?'
  const options = ['--no-color', '--no-column', '--line-number', '--only-matching', '--extended-regexp']
  const places = ['docs', 'deploy', 'src', 'Containerfile']
  // git grep fails if nothing matches.
  const found = spawnSync('git', ['grep', ...options, pattern, '--', ...places], { encoding: 'utf8' })
  for (const [, place, named, other] of found.stdout.matchAll(/^(.+?:\d+):(\D+(.+))$/gm)) {
    if (other !== version) yield `${place} names ${named}, but package.json has version ${version}`
  }
}

/** Sentences that a release makes untrue. */
function* outdatedSentences() {
  const found = spawnSync('git', ['grep', '--no-color', '--line-number', 'published yet', '--', '*.md'], {
    encoding: 'utf8',
  })
  for (const [place] of found.stdout.matchAll(/^.+?:\d+/gm)) yield `${place} says that something is not published yet`
}

function* changelogProblems() {
  const headings = readFileSync('CHANGELOG.md', 'utf8').matchAll(/^## (\S+) - \d{4}-\d\d-\d\d$/gm)
  if ([...headings].some(([, dated]) => dated === version)) return
  yield `CHANGELOG.md has no heading "## ${version} - YYYY-MM-DD" with the date of the release`
}

function* gitProblems() {
  const changed = output('git', 'status', '--porcelain').match(/(?<=^.. ).+/gm)
  if (changed) yield `Files are not committed: ${changed.join(', ')}`
  // npm packs files that git ignores.
  const ignored = output(
    'git',
    'ls-files',
    '--others',
    '--ignored',
    '--exclude-standard',
    'bin',
    'deploy',
    'docs',
    'src',
  )
  if (ignored) yield `Files that git ignores could be in the package: ${ignored.trim().replaceAll('\n', ', ')}`
  const tag = `v${version}`
  // git fails if there is no such tag.
  const { stdout } = spawnSync('git', ['rev-parse', '--quiet', '--verify', `refs/tags/${tag}^{commit}`])
  const tagged = String(stdout).trim()
  if (tagged === '') yield `The tag ${tag} does not exist: create it with git tag -a ${tag} -m '${name} ${version}'`
  else if (tagged !== head) yield `The tag ${tag} is on commit ${tagged.slice(0, 7)}, but HEAD is ${head.slice(0, 7)}`
}

function build() {
  const folder = 'dist/release'
  run('npm', 'run', '--silent', 'build')
  checkExecutable()
  mkdirSync(folder, { recursive: true })
  for (const source of ['.', './dist/petstore-client']) {
    run('npm', 'pack', '--silent', '--ignore-scripts', '--pack-destination', folder, source)
  }
  const prefix = `${folder}/${name}-${version}`
  writeFileSync(`${prefix}-${process.platform}-${process.arch}.tar.gz`, gzipSync(executableArchive(), { level: 9 }))
  writeFileSync(`${prefix}.sbom.json`, `${JSON.stringify(billOfMaterials(), null, 2)}\n`)
  const sums = readdirSync(folder)
    .sort()
    .map(file => `${sha256(`${folder}/${file}`)}  ${file}\n`)
  writeFileSync(`${folder}/SHA256SUMS`, sums.join(''))
  console.log(`Built in ${folder}:\n${sums.join('')}`)
}

function checkExecutable() {
  const printed = output('dist/petstore', '--version')
  const [, built, commit] = /^petstore (\S+) \(commit (\w{7,}),/.exec(printed) ?? []
  if (built !== version || !head.startsWith(commit)) fail(`dist/petstore has another version or commit: ${printed}`)
}

/** A tar file with the executable and the licence, owned by root and as old as the commit. */
function executableArchive() {
  const folder = 'dist/release-executable'
  const files = { petstore: 'dist/petstore', LICENSE: 'LICENSE' }
  const seconds = committedAt().getTime() / 1_000
  mkdirSync(folder)
  try {
    for (const [file, source] of Object.entries(files)) {
      copyFileSync(source, `${folder}/${file}`)
      chmodSync(`${folder}/${file}`, file === 'petstore' ? 0o755 : 0o644)
      utimesSync(`${folder}/${file}`, seconds, seconds)
    }
    const owner =
      process.platform === 'darwin' ? ['--uid=0', '--gid=0', '--uname=', '--gname='] : ['--owner=0', '--group=0']
    const options = ['--format=ustar', '--numeric-owner', ...owner, '-C', folder]
    // Otherwise macOS adds files with its extended attributes.
    const env = { ...process.env, COPYFILE_DISABLE: '1' }
    const limits = { env, maxBuffer: Number.POSITIVE_INFINITY }
    return execFileSync('tar', ['-cf', '-', ...options, ...Object.keys(files)], limits)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** What the executable and the server package contain, in CycloneDX: Bun, for every platform in the lockfile. */
function billOfMaterials() {
  const options = ['--sbom-format=cyclonedx', '--sbom-type=application', '--omit=dev', '--package-lock-only']
  const { serialNumber: _random, ...bill } = JSON.parse(output('npm', 'sbom', ...options))
  // npm takes the name from the folder, and the time from the clock.
  bill.metadata.component.name = name
  bill.metadata.timestamp = committedAt().toISOString()
  return bill
}

function committedAt() {
  return new Date(output('git', 'show', '--no-patch', '--format=%cI', head).trim())
}

function sha256(file) {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

function output(command, ...args) {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

function run(command, ...args) {
  execFileSync(command, args, { stdio: ['ignore', 2, 2] })
}

function fail(message) {
  console.error(`petstore: ${message}`)
  process.exit(1)
}
