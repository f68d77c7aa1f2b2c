// A migration for PocketBase: a collection of animals with the petstore's rules, and a superuser whose token is written
// to the file `token`. PocketBase takes 0 for a missing number, so categoryId cannot be required.
migrate(app => {
  app.save(
    new Collection({
      type: 'base',
      name: 'pets',
      fields: [
        { name: 'name', type: 'text', required: true, max: 1_000, pattern: '\\S' },
        { name: 'categoryId', type: 'number', onlyInt: true },
        { name: 'status', type: 'select', maxSelect: 1, values: ['available', 'pending', 'sold'] },
      ],
      indexes: ['CREATE INDEX pets_by_status ON pets (status)'],
    }),
  )
  const settings = app.settings()
  settings.logs.maxDays = 0
  app.save(settings)
  const superuser = new Record(app.findCollectionByNameOrId('_superusers'))
  superuser.set('email', 'bench@example.com')
  superuser.set('password', $security.randomString(30))
  app.save(superuser)
  $os.writeFile(`${app.dataDir()}/token`, superuser.newStaticAuthToken(0), 0o600)
})
