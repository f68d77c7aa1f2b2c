export { PetstoreClient } from './client.ts'
export type { DeprecationNotice, OperationName } from './deprecation.ts'
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
export type { Link } from './links.ts'
export type { ClientOptions, Deployment, Environment, Fetch } from './options.ts'
export { readBaseUrl } from './options.ts'
export type { NewPet, Pet, PetStatus } from './pet.ts'
export type { CreateOptions, ListOptions, PetList, PetPage, Pets } from './pets.ts'
export type { CallOptions } from './request.ts'
