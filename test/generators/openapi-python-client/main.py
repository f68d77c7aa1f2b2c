import os
from collections.abc import Iterator
from uuid import uuid4

from pet_store_client import AuthenticatedClient
from pet_store_client.api.pets import create_pet, delete_pet, get_pet, list_pets, update_pet
from pet_store_client.models import Error, NewPet, Pet, PetChanges, PetStatus
from pet_store_client.types import UNSET, Response, Unset


def connect(key: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=os.environ["PETSTORE_URL"], token=key)


client = connect(os.environ["PETSTORE_KEY"])


def all_pets() -> Iterator[Pet]:
    cursor: str | Unset = UNSET
    while True:
        page = list_pets.sync_detailed(client=client, limit=2, cursor=cursor)
        assert isinstance(page.parsed, list)
        yield from page.parsed
        cursor = page.headers.get("X-Next-Cursor", UNSET)
        if isinstance(cursor, Unset):
            return


def show(what: str, pet: Pet | Error | None) -> None:
    assert isinstance(pet, Pet)
    print(what, pet.id, pet.category_id, pet.status, pet.name)


def show_error(response: Response[Pet | Error] | Response[list[Pet] | Error]) -> None:
    assert isinstance(response.parsed, Error)
    print(int(response.status_code), response.parsed.code)


mia = NewPet(name=" Mia 🐈", category_id=9223372036854775807, status=PetStatus.SOLD)
key = str(uuid4())
created = create_pet.sync(client=client, body=mia, idempotency_key=key)
assert isinstance(created, Pet)
show("created", created)
repeated = create_pet.sync(client=client, body=mia, idempotency_key=key)
assert isinstance(repeated, Pet)
print("repeated", repeated.id)
show("fetched", get_pet.sync(created.id, client=client))
print("listed", *[pet.id for pet in all_pets()])

body = PetChanges(status=None, name="New")
updated = update_pet.sync(created.id, client=client, body=body, status=PetStatus.SOLD)
assert isinstance(updated, Pet)
print("updated", updated.id, updated.category_id, updated.status or "none", updated.name)
removals = [delete_pet.sync_detailed(created.id, client=client) for _ in range(2)]
print("removed", *[int(removal.status_code) for removal in removals])

show_error(create_pet.sync_detailed(client=client, body=NewPet(name="\ufeff", category_id=1)))
show_error(list_pets.sync_detailed(client=client, cursor="wrong"))
show_error(list_pets.sync_detailed(client=connect("wrong")))
show_error(get_pet.sync_detailed(404, client=client))
