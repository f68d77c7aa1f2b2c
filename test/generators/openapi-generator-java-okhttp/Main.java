import java.util.List;
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.PetsApi;
import org.openapitools.client.model.Error;
import org.openapitools.client.model.NewPet;
import org.openapitools.client.model.Pet;
import org.openapitools.client.model.PetStatus;

class Main {
  public static void main(String[] args) throws Exception {
    var pets = connect(System.getenv("PETSTORE_KEY"));

    var mia = new NewPet().name(" Mia 🐈").categoryId(Long.MAX_VALUE).status(PetStatus.SOLD);
    var key = UUID.randomUUID().toString();
    var created = pets.createPet(mia, key, null);
    print("created", created);
    System.out.println("repeated " + pets.createPet(mia, key, null).getId());
    print("fetched", pets.getPet(created.getId(), null));

    System.out.print("listed");
    String cursor = null;
    do {
      var page = pets.listPetsWithHttpInfo(2, null, cursor, null);
      page.getData().forEach(pet -> System.out.print(" " + pet.getId()));
      var next = page.getHeaders().getOrDefault("X-Next-Cursor", List.of());
      cursor = next.isEmpty() ? null : next.get(0);
    } while (cursor != null);
    System.out.println();

    printError(() -> pets.createPet(new NewPet().name("\uFEFF").categoryId(1L), null, null));
    printError(() -> pets.listPets(null, null, "wrong", null));
    printError(() -> connect("wrong").listPets(null, null, null, null));
    printError(() -> pets.getPet(404L, null));
  }

  static PetsApi connect(String key) {
    var client = new ApiClient().setBasePath(System.getenv("PETSTORE_URL"));
    client.setBearerToken(key);
    return new PetsApi(client);
  }

  static void print(String event, Pet pet) {
    var name = pet.getName();
    System.out.printf("%s %d %d %s %s%n", event, pet.getId(), pet.getCategoryId(), pet.getStatus(), name);
  }

  interface Call {
    Object send() throws ApiException;
  }

  static void printError(Call call) throws Exception {
    try {
      throw new AssertionError("No error: " + call.send());
    } catch (ApiException e) {
      var error = JSON.<Error>deserialize(e.getResponseBody(), Error.class);
      System.out.println(e.getCode() + " " + error.getCode());
    }
  }
}
