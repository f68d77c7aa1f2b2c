// Adds, repeats, fetches and lists animals, and reads errors.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"math"
	"net/http"
	"os"

	"example/petstore"
)

func main() {
	ctx := context.Background()
	client := connect(os.Getenv("PETSTORE_KEY"))

	mia := petstore.NewPet{Name: " Mia 🐈", CategoryId: math.MaxInt64, Status: new(petstore.Sold)}
	idempotent := &petstore.CreatePetParams{IdempotencyKey: new(rand.Text())}
	created := must(client.CreatePetWithResponse(ctx, idempotent, mia)).JSON201
	fmt.Println("created", created.Id, created.CategoryId, *created.Status, created.Name)
	repeated := must(client.CreatePetWithResponse(ctx, idempotent, mia)).JSON201
	fmt.Println("repeated", repeated.Id)
	fetched := must(client.GetPetWithResponse(ctx, created.Id, nil)).JSON200
	fmt.Println("fetched", fetched.Id, fetched.CategoryId, *fetched.Status, fetched.Name)

	fmt.Print("listed")
	params := &petstore.ListPetsParams{Limit: new(2)}
	for more := true; more; more = params.Cursor != nil {
		page := must(client.ListPetsWithResponse(ctx, params))
		for _, pet := range *page.JSON200 {
			fmt.Print(" ", pet.Id)
		}
		params.Cursor = page.Headers200.XNextCursor
	}
	fmt.Println()

	blank := must(client.CreatePetWithResponse(ctx, nil, petstore.NewPet{Name: "\uFEFF"}))
	fmt.Println(blank.StatusCode(), blank.JSON400.Code)
	badCursor := must(client.ListPetsWithResponse(ctx, &petstore.ListPetsParams{Cursor: new("wrong")}))
	fmt.Println(badCursor.StatusCode(), badCursor.JSON400.Code)
	badKey := must(connect("wrong").ListPetsWithResponse(ctx, nil))
	fmt.Println(badKey.StatusCode(), badKey.JSON401.Code)
	missing := must(client.GetPetWithResponse(ctx, 404, nil))
	fmt.Println(missing.StatusCode(), missing.JSON404.Code)
}

func connect(key string) *petstore.ClientWithResponses {
	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
	return must(petstore.NewClientWithResponses(os.Getenv("PETSTORE_URL"), petstore.WithRequestEditorFn(bearer)))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
