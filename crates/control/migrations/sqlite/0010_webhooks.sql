-- Webhooks: URLs that events are sent to. Made by Tollgate alone, because their secrets are derived from a key that is not in
-- the database; with SQL they may be deleted.
CREATE TABLE webhooks (
    webhook_id  TEXT PRIMARY KEY CONSTRAINT webhook_id CHECK (webhook_id <> ''),
    name        TEXT NOT NULL DEFAULT '',   -- for people
    url         TEXT NOT NULL CONSTRAINT webhook_url CHECK (url <> ''),
    events      TEXT                        -- a list of the kinds of events; none for all
                CONSTRAINT webhook_events CHECK (events IS NULL OR json_type(events) = 'array'),
    fingerprint TEXT NOT NULL,              -- the beginning of the SHA-256 of its secret, in hex
    created_by  TEXT NOT NULL DEFAULT '',   -- a token's id
    created_at  TEXT NOT NULL,
    version     INTEGER NOT NULL            -- the generation that made it
) STRICT, WITHOUT ROWID;

-- What was and what will be sent: one row per webhook and event. Nodes claim rows, so that each event is sent once.
CREATE TABLE webhook_deliveries (
    delivery_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id    TEXT NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    occurrence    TEXT NOT NULL,            -- the same for the same event, whichever node noticed it
    event_id      TEXT NOT NULL,            -- the same for every attempt
    event         TEXT NOT NULL,            -- its kind
    body          TEXT NOT NULL,            -- what is sent
    state         TEXT NOT NULL DEFAULT 'waiting'
                  CONSTRAINT delivery_state CHECK (state IN ('waiting', 'delivered', 'failed')),
    attempts      INTEGER NOT NULL DEFAULT 0,
    next_at       TEXT NOT NULL,            -- when it is tried next
    claimed_until TEXT,                     -- a node is sending it
    status        INTEGER,                  -- of the last response
    error         TEXT,                     -- of the last attempt without one
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    UNIQUE (webhook_id, occurrence)
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE state = 'waiting';
-- Serves lists, and retention, which deletes from the old end.
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id, delivery_id);
