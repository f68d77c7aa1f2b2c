export {
  type ClientOptions,
  type CreateOptions,
  type Deployment,
  type Environment,
  type ListOptions,
  type PetList,
  type PetPage,
  type Pets,
  PetstoreClient,
  readBaseUrl,
} from './client.ts'
export {
  ConnectionError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  PetstoreError,
  RateLimitedError,
  ServerError,
  ServiceUnavailableError,
  TimeoutError,
  UnauthorizedError,
  UnexpectedResponseError,
} from './errors.ts'
export { type DeprecationNotice, type Link, type OperationName, readLinks } from './headers.ts'
export type { NewPet, Pet, PetStatus } from './json.ts'
export type { CallOptions, Fetch } from './request.ts'
