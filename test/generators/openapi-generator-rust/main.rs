use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http::Extensions;
use openapi::apis::{self, configuration::Configuration, pets_api};
use openapi::models::{self, NewPet, Pet, PetStatus};
use reqwest::{Client, Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next};

/// The cursor of the last response: the generated methods return no headers.
#[derive(Clone, Default)]
struct NextCursor(Arc<Mutex<Option<String>>>);

#[async_trait]
impl Middleware for NextCursor {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let response = next.run(request, extensions).await?;
        let cursor = response
            .headers()
            .get("X-Next-Cursor")
            .and_then(|value| value.to_str().ok());
        *self.0.lock().unwrap() = cursor.map(str::to_owned);
        Ok(response)
    }
}

#[tokio::main(flavor = "current_thread")]
#[allow(deprecated)]
async fn main() -> Result<(), Box<dyn Error>> {
    let next_cursor = NextCursor::default();
    let api = Configuration {
        base_path: env::var("PETSTORE_URL")?,
        bearer_access_token: Some(env::var("PETSTORE_KEY")?),
        client: ClientBuilder::new(Client::new())
            .with(next_cursor.clone())
            .build(),
        ..Configuration::default()
    };

    let mia = NewPet {
        status: Some(PetStatus::Sold),
        ..NewPet::new(" Mia 🐈".to_owned(), i64::MAX)
    };
    // A new key for each animal; the same one to repeat a call.
    let key = Some("6f1c0a6e-5d3b-4b67-9d53-0a6f2f0e8f11");
    let created = pets_api::create_pet(&api, mia.clone(), key, None).await?;
    print("created", &created);
    println!(
        "repeated {}",
        pets_api::create_pet(&api, mia, key, None).await?.id
    );
    print("fetched", &pets_api::get_pet(&api, created.id, None).await?);

    print!("listed");
    let mut cursor = None;
    loop {
        for pet in pets_api::list_pets(&api, Some(2), None, cursor.as_deref(), None).await? {
            print!(" {}", pet.id);
        }
        cursor = next_cursor.0.lock().unwrap().take();
        if cursor.is_none() {
            break;
        }
    }
    println!();

    let blank = NewPet::new("\u{FEFF}".to_owned(), 1);
    print_error(pets_api::create_pet(&api, blank, None, None).await)?;
    print_error(pets_api::list_pets(&api, None, None, Some("wrong"), None).await)?;
    let wrong_key = Configuration {
        bearer_access_token: Some("wrong".to_owned()),
        ..api.clone()
    };
    print_error(pets_api::list_pets(&wrong_key, None, None, None, None).await)?;
    print_error(pets_api::get_pet(&api, 404, None).await)
}

fn print(event: &str, pet: &Pet) {
    let status = pet
        .status
        .map(|status| status.to_string())
        .unwrap_or_default();
    println!(
        "{event} {} {} {status} {}",
        pet.id, pet.category_id, pet.name
    );
}

fn print_error<T, E>(result: Result<T, apis::Error<E>>) -> Result<(), Box<dyn Error>> {
    let Err(apis::Error::ResponseError(response)) = result else {
        return Err("no error response".into());
    };
    let error: models::Error = serde_json::from_str(&response.content)?;
    println!("{} {}", response.status.as_u16(), error.code);
    Ok(())
}
