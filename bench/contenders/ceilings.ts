import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Contender, Given, Place } from '../harness/contender.ts'
import type { FixedAnswer, OurAnswers } from '../harness/our-answers.ts'
import { ourRequests } from '../harness/work.ts'

const here = import.meta.dir

/** Servers that answer what the petstore would, from memory, and do none of its work. */
const ceiling = {
  works: ['list', 'list-1', 'list-512', 'get'],
  rules: ['same'],
  prepare: ({ file }: Place, { answers }: Given) => writeFileSync(file, JSON.stringify(answers ?? null)),
  requests: ourRequests(String),
} as const

export const fixedBun: Contender = {
  ...ceiling,
  name: 'fixed-bun',
  title: 'Bun.serve, fixed bytes',
  about: 'A ceiling: the bytes and headers of our answer, from memory; no key, no store, no log',
  command: place => bunCeiling('fixed-bun.ts', place),
}

/** The same, and as many of the steps towards a real answer. */
export const stepContender = (stepsTaken: number): Contender => ({
  ...ceiling,
  name: `step-${stepsTaken}`,
  title: `${stepsTaken} steps`,
  about: 'What an answer needs of the runtime',
  command: place => [...bunCeiling('steps.ts', place), String(stepsTaken)],
})

function bunCeiling(program: string, { port, file }: Place): readonly string[] {
  return [process.execPath, '--no-env-file', join(here, program), String(port), file]
}

export const fixedNode: Contender = {
  ...ceiling,
  name: 'fixed-node',
  title: 'node:http, fixed bytes',
  about: 'The same on Node',
  needs: { programs: ['node'] },
  command: ({ port, file }) => ['node', join(here, 'fixed-node.js'), String(port), file],
}

export const fixedNginx: Contender = {
  ...ceiling,
  name: 'fixed-nginx',
  title: 'nginx, fixed bytes',
  about: 'The same with nginx and one worker; it adds a `Server` header',
  needs: { programs: ['nginx'] },
  prepare: (place, { answers }) =>
    writeFileSync(place.file, answers ? nginxConfiguration(place, answers) : ''),
  command: ({ folder, file }) => ['nginx', '-p', folder, '-c', file, '-e', 'stderr'],
}

function nginxConfiguration({ port, folder }: Place, { list, get }: OurAnswers): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
    daemon off;
    worker_processes 1;
    pid ${folder}/pid;
    events { worker_connections 1024; }
    http {
      access_log off;
      keepalive_requests 1000000000;
      ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join('\n')}
      server {
        listen 127.0.0.1:${port};
        location = /v1/pets { ${nginxAnswer(list)} }
        location /v1/pets/ { ${nginxAnswer(get)} }
      }
    }`
}

function nginxAnswer({ headers, body }: FixedAnswer): string {
  const { 'content-type': type = '', ...others } = headers
  const added = Object.entries(others).map(([name, value]) => `add_header ${name} ${quoted(value)};`)
  return `default_type ${quoted(type)}; ${added.join(' ')} return 200 ${quoted(body)};`
}

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`
}
