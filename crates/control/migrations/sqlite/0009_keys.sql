-- API keys of clients: tk_<key_id>_<secret>, of which only the SHA-256 is kept. Keys are made by Tollgate; with SQL they are
-- revoked, renamed or given another end.
CREATE TABLE rate_limit_keys (
    namespace      TEXT NOT NULL DEFAULT 'default' CONSTRAINT key_namespace CHECK (namespace <> ''),
    key_id         TEXT NOT NULL CONSTRAINT key_id CHECK (key_id <> ''),
    client_key     TEXT NOT NULL               -- whose it is
                   CONSTRAINT key_client_key CHECK (client_key <> ''),
    name           TEXT NOT NULL DEFAULT '',   -- for people
    hash           BLOB NOT NULL               -- SHA-256 of the whole key
                   CONSTRAINT key_hash CHECK (length(hash) = 32),
    previous_hash  BLOB                        -- that of the key before the last rotation
                   CONSTRAINT key_previous_hash CHECK (previous_hash IS NULL OR length(previous_hash) = 32),
    previous_until TEXT                        -- first instant the one before is good no more
                   CONSTRAINT key_previous_until CHECK (previous_until IS NULL OR strftime('%s', previous_until) IS NOT NULL),
    rotated_at     TEXT,                       -- when it was rotated last
    expires_at     TEXT                        -- first instant it is good no more; none for never
                   CONSTRAINT key_expires_at CHECK (expires_at IS NULL OR strftime('%s', expires_at) IS NOT NULL),
    revoked_at     TEXT                        -- since when it is good no more
                   CONSTRAINT key_revoked_at CHECK (revoked_at IS NULL OR strftime('%s', revoked_at) IS NOT NULL),
    created_by     TEXT NOT NULL DEFAULT '',   -- a token's id
    created_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    updated_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    version        INTEGER NOT NULL DEFAULT 0, -- the generation that changed it last
    PRIMARY KEY (namespace, key_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_limit_keys_client ON rate_limit_keys (client_key, namespace);

-- Rows written with SQL, as in 0003_by_hand.sql.
CREATE TRIGGER rate_limit_keys_text_inserted BEFORE INSERT ON rate_limit_keys
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.key_id || ' ' || NEW.client_key || ' ' || NEW.name
            || ' ' || NEW.created_by);
END;
CREATE TRIGGER rate_limit_keys_text_updated BEFORE UPDATE OF namespace, key_id, client_key, name, created_by ON rate_limit_keys
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_texts VALUES (NEW.namespace || ' ' || NEW.key_id || ' ' || NEW.client_key || ' ' || NEW.name
            || ' ' || NEW.created_by);
END;
CREATE TRIGGER rate_limit_keys_inserted AFTER INSERT ON rate_limit_keys
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_keys SET previous_until = strftime('%Y-%m-%dT%H:%M:%f000Z', previous_until),
        expires_at = strftime('%Y-%m-%dT%H:%M:%f000Z', expires_at), revoked_at = strftime('%Y-%m-%dT%H:%M:%f000Z', revoked_at)
    WHERE namespace = NEW.namespace AND key_id = NEW.key_id;
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('key', NEW.namespace, NEW.key_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_keys_updated AFTER UPDATE ON rate_limit_keys
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    UPDATE tollgate_state SET writing = 1;
    UPDATE rate_limit_keys SET updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
    WHERE namespace = NEW.namespace AND key_id = NEW.key_id AND updated_at = OLD.updated_at;
    UPDATE rate_limit_keys SET previous_until = strftime('%Y-%m-%dT%H:%M:%f000Z', previous_until),
        expires_at = strftime('%Y-%m-%dT%H:%M:%f000Z', expires_at), revoked_at = strftime('%Y-%m-%dT%H:%M:%f000Z', revoked_at)
    WHERE namespace = NEW.namespace AND key_id = NEW.key_id;
    UPDATE tollgate_state SET writing = 0;
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('key', OLD.namespace, OLD.key_id, 1), ('key', NEW.namespace, NEW.key_id, 0) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER rate_limit_keys_deleted AFTER DELETE ON rate_limit_keys
WHEN (SELECT writing FROM tollgate_state) = 0 BEGIN
    INSERT INTO tollgate_sql_edits (kind, namespace, id, existed)
    VALUES ('key', OLD.namespace, OLD.key_id, 1) ON CONFLICT DO NOTHING;
END;
