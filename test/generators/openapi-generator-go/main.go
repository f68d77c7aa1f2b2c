// Adds, repeats, fetches and lists animals, and reads errors.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"math"
	"net/http"
	"os"

	"example/petstore"
)

func main() {
	config := petstore.NewConfiguration()
	config.Servers = petstore.ServerConfigurations{{URL: os.Getenv("PETSTORE_URL")}}
	pets := petstore.NewAPIClient(config).PetsAPI
	ctx := withKey(os.Getenv("PETSTORE_KEY"))

	mia := petstore.PetToAdd{Name: " Mia 🐈", CategoryId: math.MaxInt64, Status: petstore.SOLD.Ptr()}
	create := pets.CreatePet(ctx).PetToAdd(mia).IdempotencyKey(rand.Text())
	created, _ := must(create.Execute())
	fmt.Println("created", created.Id, created.CategoryId, created.GetStatus(), created.Name)
	repeated, _ := must(create.Execute())
	fmt.Println("repeated", repeated.Id)
	fetched, _ := must(pets.GetPet(ctx, created.Id).Execute())
	fmt.Println("fetched", fetched.Id, fetched.CategoryId, fetched.GetStatus(), fetched.Name)

	fmt.Print("listed")
	list := pets.ListPets(ctx).Limit(2)
	for more := true; more; {
		page, response := must(list.Execute())
		for _, pet := range page {
			fmt.Print(" ", pet.Id)
		}
		cursor := response.Header.Get("X-Next-Cursor")
		list, more = list.Cursor(cursor), cursor != ""
	}
	fmt.Println()

	printError(pets.CreatePet(ctx).PetToAdd(petstore.PetToAdd{Name: "\uFEFF"}).Execute())
	printError(pets.ListPets(ctx).Cursor("wrong").Execute())
	printError(pets.ListPets(withKey("wrong")).Execute())
	printError(pets.GetPet(ctx, 404).Execute())
}

func withKey(key string) context.Context {
	return context.WithValue(context.Background(), petstore.ContextAccessToken, key)
}

func printError[T any](_ T, response *http.Response, err error) {
	if failed, ok := errors.AsType[*petstore.GenericOpenAPIError](err); ok {
		fmt.Println(response.StatusCode, failed.Model().(petstore.Error).Code)
	}
}

func must[T any](value T, response *http.Response, err error) (T, *http.Response) {
	if err != nil {
		log.Fatal(err)
	}
	return value, response
}
