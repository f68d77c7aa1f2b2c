import java.util.UUID
import org.openapitools.client.apis.PetsApi
import org.openapitools.client.infrastructure.ClientError
import org.openapitools.client.infrastructure.ClientException
import org.openapitools.client.infrastructure.Serializer
import org.openapitools.client.infrastructure.Success
import org.openapitools.client.models.Error
import org.openapitools.client.models.NewPet
import org.openapitools.client.models.Pet
import org.openapitools.client.models.PetStatus

@Suppress("DEPRECATION")
fun main() {
  val pets = connect(System.getenv("PETSTORE_KEY"))

  val mia = NewPet(" Mia 🐈", Long.MAX_VALUE, PetStatus.sold)
  val key = UUID.randomUUID().toString()
  val created = pets.createPet(mia, key)
  print("created", created)
  println("repeated ${pets.createPet(mia, key).id}")
  print("fetched", pets.getPet(created.id))

  print("listed")
  var cursor: String? = null
  do {
    val page = pets.listPetsWithHttpInfo(2, null, cursor, null) as Success
    page.data?.forEach { print(" ${it.id}") }
    cursor = page.headers["X-Next-Cursor"]?.first()
  } while (cursor != null)
  println()

  printError { pets.createPet(NewPet("\uFEFF", 1)) }
  printError { pets.listPets(cursor = "wrong") }
  printError { connect("wrong").listPets() }
  printError { pets.getPet(404) }
}

fun connect(key: String) =
  PetsApi(System.getenv("PETSTORE_URL")).apply { accessTokenProvider = { key } }

fun print(event: String, pet: Pet) =
  println("$event ${pet.id} ${pet.categoryId} ${pet.status} ${pet.name}")

fun printError(call: () -> Any) {
  try {
    error("No error: ${call()}")
  } catch (e: ClientException) {
    val body = (e.response as ClientError<*>).body as String
    println("${e.statusCode} ${Serializer.moshi.adapter(Error::class.java).fromJson(body)?.code}")
  }
}
