// Adds, repeats, fetches and lists animals, and reads errors.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"math"
	"os"

	"example/petstore"
)

func main() {
	ctx := context.Background()
	client := connect(os.Getenv("PETSTORE_KEY"))

	mia := &petstore.NewPet{
		Name:       " Mia 🐈",
		CategoryId: math.MaxInt64,
		Status:     petstore.NewOptPetStatus(petstore.PetStatusSold),
	}
	idempotent := petstore.CreatePetParams{IdempotencyKey: petstore.NewOptString(rand.Text())}
	created := must(client.CreatePet(ctx, mia, idempotent)).(*petstore.PetHeaders).Response
	fmt.Println("created", created.ID, created.CategoryId, created.Status.Value, created.Name)
	repeated := must(client.CreatePet(ctx, mia, idempotent)).(*petstore.PetHeaders).Response
	fmt.Println("repeated", repeated.ID)
	fetched := must(client.GetPet(ctx, petstore.GetPetParams{PetId: created.ID})).(*petstore.GetPetOKHeaders).Response
	fmt.Println("fetched", fetched.ID, fetched.CategoryId, fetched.Status.Value, fetched.Name)

	fmt.Print("listed")
	params := petstore.ListPetsParams{Limit: petstore.NewOptInt(2)}
	for more := true; more; more = params.Cursor.Set {
		page := must(client.ListPets(ctx, params)).(*petstore.PetsHeaders)
		for _, pet := range page.Response {
			fmt.Print(" ", pet.ID)
		}
		params.Cursor = page.XNextCursor
	}
	fmt.Println()

	// The type of a result is its status.
	blank := must(client.CreatePet(ctx, &petstore.NewPet{Name: "\uFEFF"}, petstore.CreatePetParams{}))
	fmt.Println(400, blank.(*petstore.CreatePetBadRequest).Response.Code)
	badCursor := must(client.ListPets(ctx, petstore.ListPetsParams{Cursor: petstore.NewOptString("wrong")}))
	fmt.Println(400, badCursor.(*petstore.ErrorHeaders).Response.Code)
	badKey := must(connect("wrong").ListPets(ctx, petstore.ListPetsParams{}))
	fmt.Println(401, badKey.(*petstore.UnauthorizedHeaders).Response.Code)
	missing := must(client.GetPet(ctx, petstore.GetPetParams{PetId: 404}))
	fmt.Println(404, missing.(*petstore.GetPetNotFound).Response.Code)
}

type apiKey string

func (key apiKey) BearerAuth(context.Context, petstore.OperationName) (petstore.BearerAuth, error) {
	return petstore.BearerAuth{Token: string(key)}, nil
}

func connect(key string) *petstore.Client {
	return must(petstore.NewClient(os.Getenv("PETSTORE_URL"), apiKey(key)))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
