-- A store of schema version 3 as its first program left it, before the migrations up to it became one.
PRAGMA application_id = 0x50455453;
PRAGMA user_version = 3;
CREATE TABLE pets (
     id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
     name TEXT NOT NULL,
     category_id INTEGER NOT NULL,
     status TEXT CHECK (status IN ('available', 'pending', 'sold'))
   ) STRICT;
CREATE INDEX pets_by_status ON pets (status);
CREATE TABLE api_keys (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     name TEXT NOT NULL,
     hash TEXT NOT NULL UNIQUE,
     shown TEXT NOT NULL,
     read_only INTEGER NOT NULL CHECK (read_only IN (0, 1)),
     created_at_ms INTEGER NOT NULL,
     expires_at_ms INTEGER,
     revoked_at_ms INTEGER,
     last_used_at_ms INTEGER,
     deprecated_uses INTEGER NOT NULL DEFAULT 0,
     deprecated_last_used_at_ms INTEGER
   , metrics INTEGER NOT NULL DEFAULT 0 CHECK (metrics IN (0, 1))) STRICT;
CREATE TABLE creation_keys (
     scope TEXT NOT NULL,
     key TEXT NOT NULL,
     fingerprint TEXT NOT NULL,
     pet_id INTEGER NOT NULL,
     created_at_ms INTEGER NOT NULL,
     PRIMARY KEY (scope, key)
   ) STRICT, WITHOUT ROWID;
CREATE INDEX creation_keys_by_age ON creation_keys (created_at_ms);
INSERT INTO pets VALUES (1, 'Rex', 9223372036854775807, 'sold'), (2, 'Tom', 7, NULL);
UPDATE sqlite_sequence SET seq = 50 WHERE name = 'pets';
INSERT INTO api_keys VALUES (1, 'prometheus', 'hash', 'pets_abcd', 1, 0, NULL, NULL, NULL, 0, NULL, 1);
INSERT INTO creation_keys VALUES ('scope', 'key', 'fingerprint', 2, 0);
