-- API keys of clients: tk_<key_id>_<secret>, of which only the SHA-256 is kept. Keys are made by Tollgate; with SQL they are
-- revoked, renamed or given another end.

-- Temporary objects last, as in 0003_by_hand.sql.
SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place) || ', pg_temp', TRUE)
FROM unnest(current_schemas(FALSE)) WITH ORDINALITY AS searched (name, place) WHERE name NOT LIKE 'pg\_temp%';

CREATE TABLE rate_limit_keys (
    namespace      TEXT COLLATE "C" NOT NULL DEFAULT 'default' CONSTRAINT key_namespace CHECK (namespace <> ''),
    key_id         TEXT COLLATE "C" NOT NULL CONSTRAINT key_id CHECK (key_id <> ''),
    client_key     TEXT COLLATE "C" NOT NULL          -- whose it is
                   CONSTRAINT key_client_key CHECK (client_key <> ''),
    name           TEXT        NOT NULL DEFAULT '',   -- for people
    hash           BYTEA       NOT NULL               -- SHA-256 of the whole key
                   CONSTRAINT key_hash CHECK (length(hash) = 32),
    previous_hash  BYTEA                              -- that of the key before the last rotation
                   CONSTRAINT key_previous_hash CHECK (previous_hash IS NULL OR length(previous_hash) = 32),
    previous_until TIMESTAMPTZ,                       -- first instant the one before is good no more
    rotated_at     TIMESTAMPTZ,                       -- when it was rotated last
    expires_at     TIMESTAMPTZ,                       -- first instant it is good no more; none for never
    revoked_at     TIMESTAMPTZ,                       -- since when it is good no more
    created_by     TEXT        NOT NULL DEFAULT '',   -- a token's id
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    version        BIGINT      NOT NULL DEFAULT 0,    -- the generation that changed it last
    PRIMARY KEY (namespace, key_id)
);
CREATE INDEX rate_limit_keys_client ON rate_limit_keys (client_key, namespace);

CREATE TRIGGER rate_limit_keys_row BEFORE UPDATE ON rate_limit_keys
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_row();
CREATE TRIGGER rate_limit_keys_edit AFTER INSERT OR UPDATE OR DELETE ON rate_limit_keys
FOR EACH ROW WHEN (current_setting('tollgate.writing', TRUE) IS DISTINCT FROM 'on' OR NOT tollgate_writes())
EXECUTE FUNCTION tollgate_sql_edit('key', 'key_id');
CREATE TRIGGER rate_limit_keys_emptied AFTER TRUNCATE ON rate_limit_keys
FOR EACH STATEMENT EXECUTE FUNCTION tollgate_sql_truncate();
