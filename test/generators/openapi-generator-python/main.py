import os
from collections.abc import Callable, Iterator
from uuid import uuid4

from openapi_client import ApiClient, ApiException, Configuration, Error, NewPet, Pet, PetsApi, PetStatus
from urllib3 import HTTPHeaderDict


def connect(key: str) -> PetsApi:
    return PetsApi(ApiClient(Configuration(host=os.environ["PETSTORE_URL"], access_token=key)))


pets = connect(os.environ["PETSTORE_KEY"])


def all_pets() -> Iterator[Pet]:
    cursor = None
    while True:
        page = pets.list_pets_with_http_info(limit=2, cursor=cursor)
        yield from page.data
        cursor = HTTPHeaderDict(page.headers).get("X-Next-Cursor")
        if cursor is None:
            return


def show(what: str, pet: Pet) -> None:
    print(what, pet.id, pet.category_id, pet.status.value if pet.status else None, pet.name)


def show_error(call: Callable[[], object]) -> None:
    try:
        call()
    except ApiException as error:
        assert isinstance(error.data, Error)
        print(error.status, error.data.code)


mia = NewPet(name=" Mia 🐈", categoryId=9223372036854775807, status=PetStatus.SOLD)
key = str(uuid4())
created = pets.create_pet(mia, idempotency_key=key)
show("created", created)
print("repeated", pets.create_pet(mia, idempotency_key=key).id)
show("fetched", pets.get_pet(created.id))
print("listed", *[pet.id for pet in all_pets()])

show_error(lambda: pets.create_pet(NewPet(name="\ufeff", categoryId=1)))
show_error(lambda: pets.list_pets(cursor="wrong"))
show_error(lambda: connect("wrong").list_pets())
show_error(lambda: pets.get_pet(404))
